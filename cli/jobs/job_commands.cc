#include "cli/jobs/job_commands.h"

#include <array>

#include "agent/inspect/request.h"
#include "cli/jobs/job_orders.h"
#include "cli/jobs/job_stacks.h"
#include "cli/jobs/job_streams.h"
#include "cli/jobs/job_views.h"

namespace rankrun::cli {
namespace {

using launcher::Flag;
using launcher::FlagValue;

constexpr Flag kJob{
    .name = "job",
    .value = FlagValue::kText,
    .value_name = "ID|PID",
    .default_value = "the only job of this user on this host",
    .help = "The job, by its id or by the pid of its rankrun.",
    .details =
        "The first four characters of an id are enough, if no other job has them. With "
        "several agents of the job on this host, the pid of an agent chooses one. Root "
        "names the job of another user by a pid."};
constexpr Flag kJobJson{.name = "json", .help = "Print JSON, as the agents send it."};
constexpr Flag kFollow{
    .name = "follow", .letter = 'f', .help = "Go on until the job ends, or until interrupted."};

constexpr std::array kPsFlags{kJobJson, kHelpFlag};
constexpr std::array kOrderFlags{kJob, kJobJson, kHelpFlag};
constexpr std::array kStatusFlags{
    kJob, kJobJson,
    Flag{.name = "once", .help = "Print the table once, although standard output is a terminal."},
    kHelpFlag};
constexpr std::array kStacksFlags{
    kJob, Flag{.name = "pid", .help = "The numbers are pids on this host, not ranks."},
    Flag{.name = "json",
         .help = "Print JSON: one object for each group of ranks, or for each pid."},
    kHelpFlag};
constexpr std::array kStreamFlags{kJob, kFollow, kHelpFlag};

constexpr Command kCommands[] = {
    {.title = "rankctl ps",
     .name = "ps",
     .help = "List the jobs of this user on this host.",
     .details =
         "Each agent has a line: the id of its job, the pid of its rankrun, the nodes, ranks and "
         "attempt of the job, the time since it began, its state and its program. An agent "
         "that does not answer within 2 seconds is named on standard error, and the command "
         "then fails. Sockets of agents that have died are removed.",
     .flags = kPsFlags,
     .run = RunPs},
    {.title = "rankctl status",
     .name = "status",
     .help = "Show what each rank of a job does, on all nodes.",
     .details =
         "On a terminal, the table is renewed each second. _STATE_ is that of the rank's main "
         "thread, or how the rank ended. _SINCE_ is the time since its start or its end. _CPU_ is "
         "the share of one core that its threads use, at first since the start. _DOING_ is the "
         "operation of `librankrun` or the key or peer that it waits for; of other programs, the "
         "system call. _LAST LINE_ is that of its output.",
     .flags = kStatusFlags,
     .run = RunStatus},
    {.title = "rankctl why",
     .name = "why",
     .operands = "[RANK]",
     .most_operands = 1,
     .help = "Say which ranks wait, for which other rank, and what that one does instead.",
     .details = "After that come all ranks, equal ones together, or only _RANK_ with more detail. "
                "The command looks twice, 20 milliseconds apart. If the ranks do not use "
                "**librankrun**, it also reads their stacks, and stops each for some milliseconds.",
     .flags = kOrderFlags,
     .run = RunWhy},
    {.title = "rankctl stacks",
     .name = "stacks",
     .operands = "[RANK...]",
     .most_operands = agent::kMaxStacksRanks,
     .help = "Print the stacks of ranks of a job, on all nodes, or of processes on this host.",
     .details =
         "_RANK_ is a rank, or a range such as 0-7; without one, all ranks of a job of up to 64. "
         "Ranks with equal stacks are shown once. A rank that has ended, a node that does not "
         "answer and a stack that could not be read are named, and the others shown. Without "
         "`--job` and `--pid`, numbers that are no ranks of a running job of this user are pids. "
         "For each thread the command prints its state, its system call with the file, and its "
         "functions, innermost first. For programs of CPython 3.8 to 3.13, the functions of Python "
         "with their lines stand in the place of those of the interpreter. A process is stopped "
         "for some milliseconds only. It must be one of the same user; where the kernel restricts "
         "tracing, the command says how to allow it, and prints what /proc shows. The answer of a "
         "node has 64 KiB at most; the command says how many threads and frames had no room. The "
         "exit code is 1 if a rank or a process has no complete stack.",
     .flags = kStacksFlags,
     .run = RunStacks},
    {.title = "rankctl events",
     .name = "events",
     .help = "Print the last events of a job, as the agent on this host has seen them.",
     .details = "An agent keeps the last 1000 events, 1 MiB at most, also without `--events`. Each "
                "is a line of JSON; rankrun's page on events lists the kinds.",
     .flags = kStreamFlags,
     .run = RunEvents},
    {.title = "rankctl logs",
     .name = "logs",
     .operands = "RANK",
     .least_operands = 1,
     .most_operands = 1,
     .help = "Print the output of a rank, on whichever node it runs.",
     .details = "The agent keeps at least the last 64 KiB of each stream, which this command "
                "prints to standard output and standard error. Earlier output comes from the log "
                "file, if there is one that this host can read.",
     .flags = kStreamFlags,
     .run = RunLogs},
    {.title = "rankctl stop",
     .name = "stop",
     .help = "End a job gently, on all nodes.",
     .details = "The workers get SIGTERM and have the time of `--shutdown-timeout`. The command "
                "does not wait for them.",
     .flags = kOrderFlags,
     .run = RunStop},
    {.title = "rankctl restart",
     .name = "restart",
     .help = "End all workers of a job gently and start them again.",
     .details = "This uses up no restart of `--max-restarts`. The number of the attempt grows. A "
                "pause before a restart ends at once. The command does not wait.",
     .flags = kOrderFlags,
     .run = RunRestart},
    {.title = "rankctl drain",
     .name = "drain",
     .operands = "NODE",
     .least_operands = 1,
     .most_operands = 1,
     .help = "Let a node leave a job, as SIGTERM to its rankrun does.",
     .details = "_NODE_ is the name of the node or its node rank. The job goes on with the other "
                "nodes if `--nnodes` allows it.",
     .flags = kOrderFlags,
     .run = RunDrain},
};

}  // namespace

std::span<const Command> JobCommands() { return kCommands; }

}  // namespace rankrun::cli

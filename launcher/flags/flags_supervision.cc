#include "launcher/flags/flag_groups.h"

namespace rankrun::launcher {
namespace {

using enum FlagValue;
using enum FlagSources;

constexpr std::string_view kFailures = "Failures and termination";
constexpr std::string_view kCommandLine = "Command line";

constexpr int kMaxRestarts = 1'000'000;
constexpr int kMaxDescriptor = 1'000'000;

constexpr Flag kFlags[] = {
    {.name = "max-restarts",
     .value = kCount,
     .most = kMaxRestarts,
     .value_name = "N",
     .default_value = "0",
     .help = "Restart all workers after a failure, at most this many times.",
     .details = "The death of rankrun's own agent counts as a failure.",
     .group = kFailures,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "restart-pause",
     .value = kSeconds,
     .value_name = "SECONDS",
     .default_value = "1",
     .help = "Wait this long before the second of consecutive restarts, and twice as long before "
             "each further one, up to 30 seconds. 0: do not wait.",
     .details =
         "Restarts are consecutive unless an attempt between them lasted five minutes. In a job "
         "of several nodes, the setting of the coordinator's node counts.",
     .group = kFailures,
     .sources = kOurs},
    {.name = "continue-on-failure",
     .help = "Do not stop the other workers when one has failed.",
     .details = "The job fails when all workers have ended.",
     .group = kFailures,
     .sources = kOurs},
    {.name = "shutdown-timeout",
     .value = kSeconds,
     .value_name = "SECONDS",
     .default_value = "25",
     .help = "Wait this long after the signal that asks a worker to end before sending SIGKILL.",
     .group = kFailures,
     .from_torchrun = true,
     .sources = kPet,
     .last_variable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"},
    {.name = "save-timeout",
     .value = kSeconds,
     .value_name = "SECONDS",
     .default_value = "the value of `--shutdown-timeout`",
     .help = "Wait this long if the worker has reported that it is saving its state.",
     .group = kFailures,
     .sources = kOurs},
    {.name = "timeout",
     .value = kSeconds,
     .value_name = "SECONDS",
     .default_value = "none",
     .help = "Stop the job when it has run this long.",
     .details = "The exit code is then 124. 0 means no limit; the shortest limit is 0.001.",
     .group = kFailures,
     .sources = kOurs},
    {.name = "hang-notice",
     .value = kSeconds,
     .value_name = "SECONDS",
     .default_value = "10",
     .help = "Name the worker for which others have waited this long. 0: never.",
     .details =
         "The notice comes once, again when the worker does something else, and when the "
         "time has doubled. It needs librankrun, or a wait for a key of the store. "
         "Another notice names workers that have ended and workers that run on without steps. "
         "In a job of several nodes, the setting of the coordinator's node counts. In a job of "
         "one node without librankrun, the stacks of workers that have been quiet this long "
         "show the collectives of PyTorch in which they wait; on any node, they show dials that "
         "fail.",
     .group = kFailures,
     .sources = kOurs},
    {.name = "hang-timeout",
     .value = kSeconds,
     .value_name = "SECONDS",
     .default_value = "none",
     .help = "Take the worker for which others have waited this long for failed.",
     .details = "All workers are stopped and started again as after any failure; without a restart "
                "left, the exit code is 203. A program that does not use librankrun hangs if no "
                "worker has used the processor or files for this long. A worker that saves or is "
                "at a breakpoint does not hang. 0: never. In a job of several nodes, the setting "
                "of the coordinator's node counts.",
     .group = kFailures,
     .sources = kOurs},
    {.name = "signals-to-handle",
     .value = kText,
     .value_name = "LIST",
     .default_value = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .help = "End the job gracefully on these signals; commas separate them.",
     .details =
         "The prefix SIG is optional. Signals that rankrun needs itself are refused: SIGCHLD "
         "and those of job control and of faults. SIGINT and SIGQUIT of this list count although "
         "the shell of a script ignores them in a background command (rankrun ... &). Without "
         "this flag they stay ignored there, except by the name torchrun; SIGHUP stays ignored "
         "under nohup.",
     .group = kFailures,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "monitor-interval",
     .value = kSeconds,
     .value_name = "SECONDS",
     .default_value = "0.1",
     .help = "No effect, because rankrun notices the end of a worker at once.",
     .group = kFailures,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "lifeline",
     .value = kCount,
     .most = kMaxDescriptor,
     .value_name = "FD",
     .help = "End the job when the other end of this inherited pipe is closed.",
     .details = "The job then ends as after SIGTERM. A program that starts rankrun holds the other "
                "end, so that the job ends with it however it dies. This flag has no variable and "
                "cannot be set in the file of `--config`.",
     .group = kFailures},

    {.name = "config",
     .value = kFile,
     .value_name = "FILE",
     .help = "Read settings from a JSON object whose keys are the names of flags: "
             "`{\"nproc-per-node\": 4}`.",
     .details = "Both spellings of a name are accepted; see FILES.",
     .group = kCommandLine,
     .sources = kOurs},
    {.name = "explain",
     .help = "Print each setting with its origin, and what rankrun would do; start nothing.",
     .details = "Settings at their defaults are left out; those without effect are listed with the "
                "reason. Conditions that only a start can reveal are not checked, such as whether "
                "a port is free or a file can be written.",
     .group = kCommandLine,
     .sources = kOurs},
    {.name = "dry-run",
     .help = "Print a command line for each worker; start nothing.",
     .details = "The lines can be pasted into a shell. Rank 0 then hosts the store itself, at "
                "`--master-port` or 29500. The same conditions as with `--explain` are not "
                "checked.",
     .group = kCommandLine,
     .sources = kOurs},
    {.name = "completion",
     .value = kChoice,
     .choices = "bash|zsh|fish|tcsh",
     .value_name = "bash|zsh|fish|tcsh",
     .help = "Print the completion script for this shell and exit.",
     .group = kCommandLine},
    {.name = "print-completion",
     .value = kChoice,
     .choices = "bash|zsh|tcsh",
     .value_name = "bash|zsh|tcsh",
     .help = "torchrun's name for `--completion`.",
     .group = kCommandLine,
     .from_torchrun = true},
    {.name = "as-torchrun",
     .help = "Behave as under the name torchrun; only as the first flag.",
     .group = kCommandLine},
    {.name = "install-torchrun",
     .help = "Let the program torchrun of the workers' Python start rankrun, and exit.",
     .details =
         "PyTorch's becomes `torchrun-pytorch` in the same folder. Repeat it after an "
         "upgrade of PyTorch, which puts its own back. `PYTHON_EXEC` chooses another Python.",
     .group = kCommandLine},
    {.name = "uninstall-torchrun",
     .help = "Undo `--install-torchrun` and exit.",
     .group = kCommandLine},
    {.name = "version", .help = "Print the version and exit.", .group = kCommandLine},
    {.name = "help",
     .letter = 'h',
     .help = "Print a summary of the flags and exit.",
     .group = kCommandLine,
     .from_torchrun = true},
};

}  // namespace

std::span<const Flag> SupervisionFlags() { return kFlags; }

}  // namespace rankrun::launcher

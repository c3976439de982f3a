#include "launcher/flags/flag_groups.h"

namespace rankrun::launcher {
namespace {

using enum FlagValue;
using enum FlagSources;

constexpr std::string_view kOutput = "Output";

constexpr Flag kFlags[] = {
    {.name = "prefix",
     .value = kText,
     .choices = "none|auto",
     .value_name = "TEMPLATE|none|auto",
     .default_value = "`auto`",
     .help = "Put this before each line, with `${rank}`, `${local_rank}`, `${role_name}` and "
             "`${hostname}` replaced. `auto` is \"[${rank}] \" if the job has several workers, "
             "else `none`.",
     .details =
         "`--log-line-prefix-template` or TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE replaces the "
         "text of `auto`. Started as `torchrun`, `auto` applies only to lines that also go to a "
         "file, and its text is "
         "\"[${role_name}${local_rank}]:\".",
     .group = kOutput,
     .sources = kOurs},
    {.name = "log-line-prefix-template",
     .value = kText,
     .value_name = "TEMPLATE",
     .default_value = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, else that of `--prefix`",
     .help = "Text of `--prefix auto`. No effect with another `--prefix`.",
     .group = kOutput,
     .from_torchrun = true,
     .sources = kPet,
     .may_be_empty = true},
    {.name = "log-dir",
     .value = kFolder,
     .value_name = "FOLDER",
     .default_value = "a temporary folder",
     .help = "Create the folders of log and error files here and keep them. /dev/null: create no "
             "files.",
     .details = "With /dev/null, `--redirects`, `--tee` and `--local-ranks-filter` have no effect.",
     .group = kOutput,
     .from_torchrun = true,
     .sources = kPet,
     .may_be_empty = true},
    {.name = "redirects",
     .letter = 'r',
     .value = kText,
     .choices = "0|1|2|3",
     .value_name = "MASK|MAP",
     .default_value = "0",
     .help = "Write output to log files instead of the console: 1 stdout, 2 stderr, 3 both, 0 "
             "none; or such masks by local rank, such as `0:3,1:2`.",
     .group = kOutput,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "tee",
     .letter = 't',
     .value = kText,
     .choices = "0|1|2|3",
     .value_name = "MASK|MAP",
     .default_value = "0",
     .help = "Write output both to log files and to the console; takes the values of "
             "`--redirects`.",
     .group = kOutput,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "local-ranks-filter",
     .value = kText,
     .value_name = "LIST",
     .help = "Show only the output of these local ranks on the console, such as `0,2`.",
     .group = kOutput,
     .from_torchrun = true,
     .sources = kPet,
     .may_be_empty = true},
    {.name = "ranks-filter",
     .value = kText,
     .value_name = "LIST",
     .help = "Show only the output of these ranks of the whole job on the console, such as `0,8`.",
     .group = kOutput,
     .sources = kOurs,
     .may_be_empty = true},
    {.name = "duplicate-stdout-filters",
     .value = kText,
     .value_name = "LIST",
     .help = "Copy lines of logged stdout that contain one of these texts to filtered_stdout.log. "
             "Commas separate the texts; a comma in a text is written twice.",
     .group = kOutput,
     .from_torchrun = true,
     .sources = kPet,
     .may_be_empty = true},
    {.name = "duplicate-stderr-filters",
     .value = kText,
     .value_name = "LIST",
     .help = "The same for stderr and filtered_stderr.log.",
     .group = kOutput,
     .from_torchrun = true,
     .sources = kPet,
     .may_be_empty = true},
    {.name = "log-limit",
     .value = kSize,
     .value_name = "SIZE",
     .default_value = "none",
     .help = "Rotate a log file before it grows beyond this size.",
     .group = kOutput,
     .sources = kOurs},
    {.name = "logs-specs",
     .value = kText,
     .value_name = "NAME",
     .help = "Refused, because it names a Python class, which rankrun cannot load.",
     .group = kOutput,
     .from_torchrun = true,
     .sources = kOurs},
    {.name = "pty",
     .help = "Give each worker a terminal as stdout, even if rankrun has none.",
     .details = "C programs then write line by line.",
     .group = kOutput,
     .sources = kOurs},
    {.name = "stdin",
     .value = kText,
     .choices = "none|all|inherit|0",
     .value_name = "none|all|inherit|RANK",
     .default_value = "0; by the name torchrun `inherit`",
     .help = "Connect the standard input of rankrun to the worker of this local rank, to all "
             "workers, or to none.",
     .details = "Other workers read /dev/null. But if it is a terminal that one worker has, "
                "rankrun lends it in turns to the others that wait for input. With `all` each "
                "worker gets a copy. With `inherit` all workers have it themselves, and the first "
                "to read a byte gets it.",
     .group = kOutput,
     .sources = kOurs},
    {.name = "events",
     .value = kFile,
     .value_name = "FILE",
     .help = "Append the events of the job to this file, one JSON object per line.",
     .group = kOutput,
     .sources = kOurs},
    {.name = "metrics",
     .value = kText,
     .value_name = "[HOST:]PORT|unix:PATH",
     .help = "Serve metrics of the job for Prometheus at http://HOST:PORT/metrics. HOST is by "
             "default 127.0.0.1.",
     .details = "Each node serves its own; several on a host need different ports. Port 0: the "
                "kernel chooses one, and rankrun prints it. At a loopback address, programs of the "
                "job's user and of root may read the metrics; at another one, any host that can "
                "connect. A UNIX socket is for its user alone. Clients use a numeric address, "
                "`localhost`, HOST or a name of the machine.",
     .group = kOutput,
     .sources = kOurs},
    {.name = "metrics-open",
     .help = "Let all users of the host read the metrics, by any name of it.",
     .details = "A Prometheus of another user needs this at a loopback address, and one that finds "
                "the node by a name that the machine does not know, such as that of a service.",
     .group = kOutput,
     .sources = kOurs},
    {.name = "report-dir",
     .value = kFolder,
     .value_name = "FOLDER",
     .default_value = "`~/.local/state/rankrun/reports`",
     .help = "Keep the report on a job with a failure in this folder for a week, for `rankctl "
             "report`. /dev/null: keep none.",
     .details = "The default is below XDG_STATE_HOME if that is set. The folder has a file for "
                "each job, 100 at most, with its events as JSON. In a job of several nodes, that "
                "of rank 0 keeps it.",
     .group = kOutput,
     .sources = kOurs},
    {.name = "trace",
     .value = kFolder,
     .value_name = "FOLDER",
     .help = "Let each worker that uses librankrun write its operations to a file in this folder.",
     .details = "`rankctl trace` makes one file of them, which Perfetto and chrome://tracing show. "
                "The files of a job are in a folder with the name of its run id, those of a "
                "restart beside those of the attempt before.",
     .group = kOutput,
     .sources = kOurs},
    {.name = "event-log-handler",
     .value = kChoice,
     .choices = "null|console|dynamic_rendezvous",
     .value_name = "null|console|dynamic_rendezvous",
     .default_value = "`null`",
     .help = "With `console`, write the events of the job to stderr. The other values have no "
             "effect.",
     .group = kOutput,
     .from_torchrun = true,
     .sources = kPet},
};

}  // namespace

std::span<const Flag> OutputFlags() { return kFlags; }

}  // namespace rankrun::launcher

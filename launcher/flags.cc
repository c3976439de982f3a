#include "launcher/flags.h"

#include "store/server.h"

namespace rankrun::launcher {
namespace {

constexpr FlagValue kSwitch = FlagValue::kNone;
constexpr FlagValue kCount = FlagValue::kCount;
constexpr FlagValue kPort = FlagValue::kPort;
constexpr FlagValue kSeconds = FlagValue::kSeconds;
constexpr FlagValue kSize = FlagValue::kSize;
constexpr FlagValue kText = FlagValue::kText;
constexpr FlagValue kAnyText = FlagValue::kAnyText;
constexpr FlagValue kChoice = FlagValue::kChoice;
constexpr FlagValue kFile = FlagValue::kFile;
constexpr FlagValue kFolder = FlagValue::kFolder;

constexpr Elsewhere kPet = Elsewhere::kPet;
constexpr Elsewhere kOurs = Elsewhere::kOurs;
constexpr Elsewhere kNowhere = Elsewhere::kNowhere;

constexpr std::string_view kWorkers = "Workers";
constexpr std::string_view kNodes = "Several nodes";
constexpr std::string_view kProgram = "The program";
constexpr std::string_view kMeeting = "Where the workers meet";
constexpr std::string_view kOutput = "Output";
constexpr std::string_view kWatching = "Failures and the end";
constexpr std::string_view kAbout = "About the command line";

constexpr int kManyRestarts = 1'000'000;
constexpr int kManyNodes = 1'000'000;
constexpr int kManyDescriptors = 1'000'000;

constexpr Flag kFlags[] = {
    {"nproc-per-node", 'n', kText, 0, 0, "N|auto|cpu|gpu",
     "the number of visible GPUs, else 1; as torchrun 1", true,
     "Workers on this node: a number; gpu: one per GPU; cpu: one per CPU that we may use; "
     "auto: gpu if there are any, else cpu.",
     kWorkers, "auto|cpu|gpu", kPet},
    {"gpus", 0, kText, 0, 0, "LIST", "", false,
     "The GPUs of the workers, as in CUDA_VISIBLE_DEVICES: 2,4,7.", kWorkers, "", kOurs},
    {"virtual-local-rank", 0, kSwitch, 0, 0, "", "", true,
     "Each worker sees its own GPU only, and LOCAL_RANK=0.", kWorkers, "", kPet},
    {"bind", 0, kChoice, 0, 0, "none|core|numa|socket", "none", false,
     "Give each worker CPUs of its own: whole cores, those of a NUMA node or of a socket, near its "
     "GPU.",
     kWorkers, "none|core|numa|socket", kOurs},
    {"numa-binding", 0, kChoice, 0, 0, "node|socket|exclusive|core-complex", "", true,
     "The same in torchrun's words: node is --bind numa; exclusive: a share of the node's cores; "
     "core-complex: cores under one cache.",
     kWorkers, "node|socket|exclusive|core-complex", kOurs},
    {"env", 'x', kText, 0, 0, "NAME[=VALUE]", "", false,
     "Set a variable for the workers; NAME alone: to its value here. May be given again.", kWorkers,
     "", kOurs, true},
    {"role", 0, kText, 0, 0, "NAME", "default", true, "ROLE_NAME of the workers.", kWorkers, "",
     kPet},

    {"nnodes", 0, kText, 0, 0, "N|MIN:MAX", "1", true,
     "Nodes of the job; the same command is started on each. MIN:MAX: it begins with MIN of them, "
     "and goes on with as many.",
     kNodes, "", kPet},
    {"node-rank", 0, kCount, 0, kManyNodes, "N", "0", true,
     "This node's place among them. With static it must be given; otherwise it is a wish.", kNodes,
     "", kPet},
    {"spares", 0, kCount, 0, kManyNodes, "N", "0", false,
     "So many of the nodes wait until another is lost.", kNodes, "", kOurs},
    {"node-timeout", 0, kSeconds, 0, 0, "SECONDS", "10", false,
     "A node that has been silent for so long is lost.", kNodes, "", kOurs},
    {"last-call", 0, kSeconds, 0, 0, "SECONDS", "30", false,
     "When MIN nodes are there, how long others may still come.", kNodes, "", kOurs},
    {"on-lost-node", 0, kChoice, 0, 0, "restart|stop", "restart", false,
     "What is done when a node is lost: start the workers again on the others, or end the job.",
     kNodes, "restart|stop", kOurs},
    {"finish-timeout", 0, kSeconds, 0, 0, "SECONDS", "3600", false,
     "From the end of a first node's workers to that of all.", kNodes, "", kOurs},
    {"secret-file", 0, kFile, 0, 0, "FILE", "", false,
     "Only nodes that have the secret in this file may join; or it is in RANKRUN_SECRET.", kNodes,
     "", kOurs},

    {"module", 'm', kSwitch, 0, 0, "", "", true,
     "The program is a Python module, as with python -m.", kProgram, "", kPet},
    {"no-python", 0, kSwitch, 0, 0, "", "", true, "Execute the program itself, whatever its name.",
     kProgram, "", kPet},
    {"run-path", 0, kSwitch, 0, 0, "", "", true,
     "Run the program under Python, whatever its name and permissions.", kProgram, "", kPet},
    {"chdir", 0, kFolder, 0, 0, "FOLDER", "", false, "Change to this folder before anything else.",
     kProgram, "", kOurs},
    {"start-method", 0, kChoice, 0, 0, "spawn|fork|forkserver", "spawn", true,
     "No effect: every worker is executed afresh.", kProgram, "spawn|fork|forkserver", kPet},

    {"standalone", 0, kSwitch, 0, 0, "", "", true,
     "One node that needs no other and no fixed port: overrides what is set about the rendezvous, "
     "the master's address and port.",
     kMeeting, "", kPet},
    {"master-addr", 0, kText, 0, 0, "ADDRESS", "127.0.0.1", true,
     "MASTER_ADDR of the workers; the store listens there besides loopback. With static, the host "
     "of "
     "the node with rank 0.",
     kMeeting, "", kPet},
    {"master-port", 0, kPort, 0, 0, "PORT",
     "a free one per attempt; 29500 if there are several nodes", true,
     "MASTER_PORT of the workers, kept over restarts.", kMeeting, "", kPet},
    {"local-addr", 0, kText, 0, 0, "ADDRESS", "", true,
     "Where other nodes reach this one; on one node the same as --master-addr, if that is not "
     "given.",
     kMeeting, "", kPet},
    {"rdzv-backend", 0, kText, 0, 0, "static|c10d", "static", true,
     "How nodes find each other: static, all at the master, each with its --node-rank; c10d: at "
     "--rdzv-endpoint, in any order and number.",
     kMeeting, "static|c10d", kPet},
    {"rdzv-endpoint", 0, kAnyText, 0, 0, "HOST[:PORT],...", "", true,
     "Where the nodes meet, or several ways to reach that host; port 29400 if none is given. With "
     "static the master's address and port, before --master-addr and --master-port.",
     kMeeting, "", kPet},
    {"rdzv-id", 0, kAnyText, 0, 0, "NAME", "a random UUID; \"none\" if there are several nodes",
     true,
     "The job's name, the same on all nodes: TORCHELASTIC_RUN_ID, and how the folder of its logs "
     "begins.",
     kMeeting, "", kPet},
    {"rdzv-conf", 0, kAnyText, 0, 0, "KEY=VALUE,...", "", true,
     "torchrun's keys: join_timeout, last_call_timeout, is_host and others; no effect on one node.",
     kMeeting, "", kPet},
    {"store-max-value", 0, kSize, 0, store::kLargestPieceG, "SIZE", "64M", false,
     "The largest value in the job's store; at most 1G.", kMeeting, "", kOurs},

    {"prefix", 0, kText, 0, 0, "TEMPLATE|none|auto", "auto", false,
     "What stands before each line; ${rank}, ${local_rank} and ${role_name} are replaced. auto: "
     "\"[${rank}] \" if there is more than one worker.",
     kOutput, "none|auto", kOurs},
    {"log-dir", 0, kFolder, 0, 0, "FOLDER", "a temporary one", true,
     "Where the folders with logs and error files are made; /dev/null: nowhere.", kOutput, "",
     kPet},
    {"redirects", 'r', kText, 0, 0, "MASK|MAP", "0", true,
     "Write output into files instead: 1 stdout, 2 stderr, 3 both; or by local rank: 0:3,1:2.",
     kOutput, "0|1|2|3", kPet},
    {"tee", 't', kText, 0, 0, "MASK|MAP", "0", true,
     "The same, but into files and onto the console.", kOutput, "0|1|2|3", kPet},
    {"local-ranks-filter", 0, kAnyText, 0, 0, "LIST", "", true,
     "Only these local ranks reach the console: 0,2.", kOutput, "", kPet},
    {"duplicate-stdout-filters", 0, kAnyText, 0, 0, "LIST", "", true,
     "Lines of logged stdout that contain one of these texts go to filtered_stdout.log besides. A "
     "comma in a text is written twice.",
     kOutput, "", kPet},
    {"duplicate-stderr-filters", 0, kAnyText, 0, 0, "LIST", "", true,
     "The same for stderr and filtered_stderr.log.", kOutput, "", kPet},
    {"log-limit", 0, kSize, 0, 0, "SIZE", "none", false,
     "A log file that would grow beyond this is rotated.", kOutput, "", kOurs},
    {"logs-specs", 0, kText, 0, 0, "NAME", "", true, "Refused: it names a Python class.", kOutput,
     "", kOurs},
    {"pty", 0, kSwitch, 0, 0, "", "", false,
     "The workers' stdout is a terminal though ours is none.", kOutput, "", kOurs},
    {"stdin", 0, kText, 0, 0, "none|all|RANK", "0", false, "Which worker reads our standard input.",
     kOutput, "none|all|0", kOurs},
    {"events", 0, kFile, 0, 0, "FILE", "", false,
     "Append what happens to this file, one JSON object per line.", kOutput, "", kOurs},
    {"event-log-handler", 0, kChoice, 0, 0, "null|console|dynamic_rendezvous", "null", true,
     "console: the same onto stderr.", kOutput, "null|console|dynamic_rendezvous", kPet},

    {"max-restarts", 0, kCount, 0, kManyRestarts, "N", "0", true,
     "How often all workers are started again after one has failed.", kWatching, "", kPet},
    {"restart-pause", 0, kSeconds, 0, 0, "SECONDS", "1", false,
     "Before the second restart in a row; twice as long each time, up to 30. 0: none.", kWatching,
     "", kOurs},
    {"continue-on-failure", 0, kSwitch, 0, 0, "", "", false,
     "A failed worker does not end the others.", kWatching, "", kOurs},
    {"shutdown-timeout", 0, kSeconds, 0, 0, "SECONDS", "25", true,
     "From the signal that asks a worker to end to SIGKILL.", kWatching, "", kPet, false,
     "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"},
    {"save-timeout", 0, kSeconds, 0, 0, "SECONDS", "that of --shutdown-timeout", false,
     "The same for a worker that says it is saving.", kWatching, "", kOurs},
    {"timeout", 0, kSeconds, 0, 0, "SECONDS", "none", false,
     "Stop the job when it has run that long.", kWatching, "", kOurs},
    {"signals-to-handle", 0, kText, 0, 0, "LIST", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", true,
     "Signals that ask the job to end.", kWatching, "", kPet},
    {"monitor-interval", 0, kSeconds, 0, 0, "SECONDS", "0.1", true,
     "No effect: an end is seen at once.", kWatching, "", kPet},
    {"lifeline", 0, kCount, 0, kManyDescriptors, "FD", "", false,
     "End the job when this inherited pipe is closed at its other end.", kWatching, "", kNowhere},

    {"config", 0, kFile, 0, 0, "FILE", "", false,
     "A JSON object with settings by the names of flags: {\"nproc-per-node\": 4}.", kAbout, "",
     kOurs},
    {"explain", 0, kSwitch, 0, 0, "", "", false,
     "Print each setting with its origin and what would be done; start nothing.", kAbout, "",
     kOurs},
    {"dry-run", 0, kSwitch, 0, 0, "", "", false,
     "Print a command line for each worker; start nothing.", kAbout, "", kOurs},
    {"completion", 0, kChoice, 0, 0, "bash|zsh|fish", "", false,
     "Print the shell's completion script and exit.", kAbout, "bash|zsh|fish", kNowhere},
    {"version", 0, kSwitch, 0, 0, "", "", false, "Print the version and exit.", kAbout, "",
     kNowhere},
    {"help", 'h', kSwitch, 0, 0, "", "", true, "Print this text and exit.", kAbout, "", kNowhere},
};

}  // namespace

FlagTable RankrunFlags(std::string_view command) { return {.command = command, .flags = kFlags}; }

std::span<const Flag> Flags() { return kFlags; }

Result<SplitArguments> SplitCommandLine(std::span<const std::string> arguments,
                                        std::string_view command) {
  return SplitFlags(RankrunFlags(command), FlagsEnd::kAtProgram, arguments);
}

}  // namespace rankrun::launcher

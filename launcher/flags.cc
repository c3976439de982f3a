#include "launcher/flags.h"

#include "store/server.h"

namespace rankrun::launcher {
namespace {

constexpr Flag kFlags[] = {
    {"nproc-per-node", 'n', FlagValue::kCount, 1, 10'000, "N", "1", true,
     "Workers to start on this node."},
    {"max-restarts", 0, FlagValue::kCount, 0, 1'000'000, "N", "0", true,
     "How often all workers are started again after one has failed."},
    {"standalone", 0, FlagValue::kNone, 0, 0, "", "", true,
     "One node that needs no other and no fixed port: what rankrun does anyway."},
    {"master-addr", 0, FlagValue::kText, 0, 0, "ADDRESS", "127.0.0.1", true,
     "MASTER_ADDR of the workers; the store listens there besides loopback."},
    {"master-port", 0, FlagValue::kPort, 0, 0, "PORT", "a free one per attempt", true,
     "MASTER_PORT of the workers, kept over restarts."},
    {"no-python", 0, FlagValue::kNone, 0, 0, "", "", true,
     "Execute the program itself, whatever its name."},
    {"module", 'm', FlagValue::kNone, 0, 0, "", "", true,
     "The program is a Python module, as with python -m."},
    {"store-max-value", 0, FlagValue::kSize, 0, store::kLargestPieceG, "SIZE", "64M", false,
     "The largest value in the job's store; at most 1G."},
    {"shutdown-timeout", 0, FlagValue::kSeconds, 0, 0, "SECONDS", "25", true,
     "From the signal that asks a worker to end to SIGKILL."},
    {"save-timeout", 0, FlagValue::kSeconds, 0, 0, "SECONDS", "0", false,
     "The same for a worker that has said that it saves, if longer."},
    {"timeout", 0, FlagValue::kSeconds, 0, 0, "SECONDS", "", false,
     "Stop the job when it has run this long; exit code 124."},
    {"continue-on-failure", 0, FlagValue::kNone, 0, 0, "", "", false,
     "A worker that fails does not end the others."},
    {"signals-to-handle", 0, FlagValue::kText, 0, 0, "NAMES", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", true,
     "Signals that end the job gently."},
    {"version", 0, FlagValue::kNone, 0, 0, "", "", false, "Print the version and exit."},
    {"help", 'h', FlagValue::kNone, 0, 0, "", "", true, "Print this text and exit."},
};

constexpr std::string_view kOnlyTorchrun[] = {"nnodes",
                                              "rdzv-backend",
                                              "rdzv-endpoint",
                                              "rdzv-id",
                                              "rdzv-conf",
                                              "monitor-interval",
                                              "start-method",
                                              "event-log-handler",
                                              "role",
                                              "run-path",
                                              "log-dir",
                                              "redirects",
                                              "tee",
                                              "node-rank",
                                              "local-ranks-filter",
                                              "local-addr",
                                              "logs-specs",
                                              "duplicate-stdout-filters",
                                              "numa-binding",
                                              "duplicate-stderr-filters",
                                              "virtual-local-rank"};

constexpr FlagTable kTable{.command = "rankrun",
                           .flags = kFlags,
                           .heading = "Flags of rankrun's own",
                           .only_torchrun = kOnlyTorchrun};

}  // namespace

const FlagTable& RankrunFlags() { return kTable; }

std::span<const Flag> Flags() { return kFlags; }

Result<SplitArguments> SplitCommandLine(std::span<const std::string> arguments) {
  return SplitFlags(kTable, FlagsEnd::kAtProgram, arguments);
}

}  // namespace rankrun::launcher

#include "cli/store_commands.h"

#include <array>
#include <cstdint>

#include "cli/store_list.h"
#include "cli/store_serve.h"
#include "cli/store_stats.h"
#include "cli/store_values.h"
#include "cli/store_watch.h"
#include "store/server.h"

namespace rankrun::cli {
namespace {

using launcher::Flag;
using launcher::FlagValue;

template <size_t n, size_t m>
constexpr std::array<Flag, n + m> Join(const std::array<Flag, n>& first,
                                       const std::array<Flag, m>& second) {
  std::array<Flag, n + m> all{};
  for (size_t i = 0; i < n; ++i) all[i] = first[i];
  for (size_t i = 0; i < m; ++i) all[n + i] = second[i];
  return all;
}

constexpr Flag Switch(std::string_view name, std::string_view help) {
  return {name, 0, FlagValue::kNone, 0, 0, "", "", false, help};
}

constexpr Flag Size(std::string_view name, std::string_view default_value, std::string_view help,
                    int most_g = 0) {
  return {name, 0, FlagValue::kSize, 0, most_g, "SIZE", default_value, false, help};
}

constexpr Flag Seconds(std::string_view name, std::string_view default_value,
                       std::string_view help) {
  return {name, 0, FlagValue::kSeconds, 0, 0, "SECONDS", default_value, false, help};
}

constexpr Flag kJson = Switch("json", "Print JSON.");
constexpr Flag kStore{"store",
                      0,
                      FlagValue::kText,
                      0,
                      0,
                      "HOST:PORT",
                      "$RANKRUN_STORE, else $MASTER_ADDR:$MASTER_PORT, else 127.0.0.1:29500",
                      false,
                      "The store to talk to."};
constexpr Flag kTimeout =
    Seconds("timeout", "10", "How long to try to connect, and then to wait for keys.");

// Of the commands that work on keys.
constexpr std::array kKeys{kStore,
                           Flag{"prefix", 0, FlagValue::kText, 0, 0, "PREFIX", "", false,
                                "Keys are those of a PrefixStore of that prefix."},
                           Switch("raw", "Keys as the server has them: no \"/\" is put before."),
                           kHelp};

constexpr std::array kServe{
    Flag{"host", 0, FlagValue::kText, 0, 0, "ADDR", "127.0.0.1 and ::1", false,
         "Listen there: an address, a name, or all. May be given several times."},
    Flag{"port", 0, FlagValue::kPort, 0, 0, "PORT", "29500", false, "0 is a free one."},
    Flag{"allow", 0, FlagValue::kText, 0, 0, "CIDR", "everybody", false,
         "Who may connect, as 10.0.0.0/8. May be given several times."},
    Flag{"port-file", 0, FlagValue::kText, 0, 0, "FILE", "", false,
         "Write the port there once the store listens."},
    Size("max-key", "8K", "The largest key; at most 1G.", store::kLargestPieceG),
    Size("max-value", "64M", "The largest value; at most 1G.", store::kLargestPieceG),
    Flag{"max-connections", 0, FlagValue::kCount, 1, 10'000'000, "N", "65536", false,
         "More are refused."},
    Size("max-bytes", "4G", "What all keys, values and waits may take."),
    Size("max-traffic", "4G", "What requests and replies under way may take."),
    Seconds("half-request-timeout", "60", "How long a request may stay half sent."),
    kHelp};
constexpr auto kGet = Join(std::array{Switch("now", "Do not wait for the key."), kTimeout}, kKeys);
constexpr auto kSet =
    Join(std::array{Flag{"if", 0, FlagValue::kAnyText, 0, 0, "EXPECTED", "", false,
                         "Only if this is the value now; empty: also if the key is not set."},
                    kTimeout},
         kKeys);
constexpr auto kOther = Join(std::array{kTimeout}, kKeys);
constexpr auto kList =
    Join(std::array{Switch("values", "Print sizes and values, too."), kJson, kTimeout}, kKeys);
constexpr std::array kStats{kJson, kStore, kTimeout, kHelp};
constexpr auto kWatch =
    Join(std::array{Seconds("interval", "0.2", "Between two looks at a key."),
                    Seconds("timeout", "none", "When to end; connecting may take 10 seconds."),
                    Switch("json", "Print each change as one line of JSON.")},
         kKeys);

constexpr size_t kAny = SIZE_MAX;

constexpr Command kCommands[] = {
    {"rankctl store serve", "serve", "", 0, 0, "Host a store in the foreground.", kServe, RunServe},
    {"rankctl store get", "get", "KEY", 1, 1, "Print a value, once it is set.", kGet, RunGet},
    {"rankctl store set", "set", "KEY VALUE", 2, 2, "Set a value; - is standard input.", kSet,
     RunSet},
    {"rankctl store add", "add", "KEY [N]", 1, 2, "Add N, or 1, and print the sum.", kOther,
     RunAdd},
    {"rankctl store wait", "wait", "KEY...", 1, kAny, "Wait until all keys are set.", kOther,
     RunWait},
    {"rankctl store del", "del", "KEY...", 1, kAny, "Delete keys.", kOther, RunDel},
    {"rankctl store list", "list", "[GLOB]", 0, 1, "Print the keys that match, sorted.", kList,
     RunList},
    {"rankctl store stats", "stats", "", 0, 0, "Print what the server tells of itself.", kStats,
     RunStats},
    {"rankctl store watch", "watch", "KEY...", 1, kAny, "Print each change of some keys.", kWatch,
     RunWatch},
};

}  // namespace

std::span<const Command> StoreCommands() { return kCommands; }

}  // namespace rankrun::cli

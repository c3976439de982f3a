#include "cli/store_commands.h"

#include <array>
#include <cstdint>

#include "cli/store_list.h"
#include "cli/store_serve.h"
#include "cli/store_stats.h"
#include "cli/store_values.h"
#include "cli/store_watch.h"
#include "store/server/server.h"

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

constexpr Flag Switch(std::string_view name, std::string_view help, std::string_view details = {}) {
  return {.name = name, .help = help, .details = details};
}

constexpr Flag Size(std::string_view name, std::string_view default_value, std::string_view help,
                    std::string_view details = {}) {
  return {.name = name,
          .value = FlagValue::kSize,
          .value_name = "SIZE",
          .default_value = default_value,
          .help = help,
          .details = details};
}

// Size of a key or value, which the protocol limits.
constexpr Flag PieceSize(std::string_view name, std::string_view default_value,
                         std::string_view help, std::string_view details = {}) {
  Flag flag = Size(name, default_value, help, details);
  flag.most = store::kMaxPieceG;
  return flag;
}

constexpr Flag Seconds(std::string_view name, std::string_view default_value, std::string_view help,
                       std::string_view details = {}) {
  return {.name = name,
          .value = FlagValue::kSeconds,
          .value_name = "SECONDS",
          .default_value = default_value,
          .help = help,
          .details = details};
}

constexpr Flag kStore{
    .name = "store",
    .value = FlagValue::kText,
    .value_name = "HOST:PORT",
    .default_value = "$RANKRUN_STORE, else $MASTER_ADDR:$MASTER_PORT, else 127.0.0.1:29500",
    .help = "Address of the store.",
    .details = "Write an IPv6 address in brackets, such as `[::1]:29500`."};
constexpr Flag kTimeout = Seconds(
    "timeout", "10", "Longest time to connect, and then to wait for keys.",
    "The limit for connecting is at least 1 second, the limit for each reply at least 10 seconds. "
    "Only the resolver's own time-outs limit the look-up of a host name; see `resolv.conf`(5).");

// Flags of the commands that work on keys.
constexpr std::array kKeys{
    kStore,
    Flag{.name = "prefix",
         .value = FlagValue::kText,
         .value_name = "PREFIX",
         .help = "Use the keys of a PrefixStore with this prefix.",
         .details = "_KEY_ then stands for _PREFIX_/_KEY_."},
    Switch("raw", "Use the keys as the server has them: put no \"/\" before them."), kHelpFlag};

constexpr std::array kServe{
    Flag{.name = "host",
         .value = FlagValue::kText,
         .value_name = "ADDR",
         .default_value = "127.0.0.1 and ::1",
         .help = "Listen at this address or name, or on all interfaces (`all`). May be given "
                 "several times.",
         .details = "A name stands for all its addresses. Without `--allow`, a store that listens "
                    "on all interfaces causes a warning, because any host that reaches the port "
                    "may read and change the store."},
    Flag{.name = "port",
         .value = FlagValue::kPort,
         .value_name = "PORT",
         .default_value = "29500",
         .help = "Listen at this port; 0 is any free port."},
    Flag{.name = "allow",
         .value = FlagValue::kText,
         .value_name = "CIDR",
         .default_value = "all addresses",
         .help = "Accept only clients with these addresses, such as `10.0.0.0/8`. May be given "
                 "several times.",
         .details = "IPv6 ranges such as `fd00::/8` and single addresses such as `10.0.0.7` are "
                    "accepted, too."},
    Flag{.name = "port-file",
         .value = FlagValue::kText,
         .value_name = "FILE",
         .help = "Write the port to this file once the store listens.",
         .details = "An existing file of that name is removed first. The new file appears "
                    "complete and remains when the store has ended."},
    PieceSize("max-key", "8K", "Largest key; at most 1G.",
              "The store closes the connection of a client that exceeds this limit or one of the "
              "following."),
    PieceSize("max-value", "64M", "Largest value; at most 1G."),
    Flag{.name = "max-connections",
         .value = FlagValue::kCount,
         .least = 1,
         .most = 10'000'000,
         .value_name = "N",
         .default_value = "65536",
         .help = "Refuse connections beyond this number."},
    Size("max-bytes", "4G", "Most memory that all keys, values and waits may take.",
         "Bookkeeping counts, too."),
    Size("max-traffic", "4G", "Most memory that requests and replies in progress may take.",
         "This limit is for all connections together."),
    Seconds("half-request-timeout", "60",
            "Close a connection whose request stays incomplete for this long.",
            "Every 4096 further bytes of the request restart the time. Between two requests, a "
            "connection may be silent forever."),
    kHelpFlag};
constexpr auto kGet = Join(std::array{Switch("now", "Do not wait for the key."), kTimeout}, kKeys);
constexpr auto kSet =
    Join(std::array{Flag{.name = "if",
                         .value = FlagValue::kText,
                         .value_name = "EXPECTED",
                         .help = "Set the value only if the present value is this one. An empty "
                                 "_EXPECTED_ also allows that the key is not set.",
                         .details = "The protocol does not distinguish a value that was already "
                                    "as wanted from one that has just been set, so both are a "
                                    "success.",
                         .may_be_empty = true},
                    kTimeout},
         kKeys);
constexpr auto kOther = Join(std::array{kTimeout}, kKeys);
constexpr auto kList = Join(
    std::array{Switch("values", "Print sizes and values, too.",
                      "Tabs separate them. Values are cut to 60 characters, except in JSON. Keys "
                      "that are deleted meanwhile are left out."),
               Switch("json", "Print a JSON array with an object for each key."), kTimeout},
    kKeys);
constexpr std::array kStats{Switch("json", "Print one JSON object."), kStore, kTimeout, kHelpFlag};
constexpr auto kWatch =
    Join(std::array{Seconds("interval", "0.2", "Time between two checks of a key; at least 0.001."),
                    Seconds("timeout", "none", "Stop after this time.",
                            "Connecting, and each reply, may take 10 seconds."),
                    Switch("json", "Print each change as a JSON object on one line.")},
         kKeys);

constexpr size_t kAny = SIZE_MAX;

constexpr Command kCommands[] = {
    {.title = "rankctl store serve",
     .name = "serve",
     .help = "Host a store in the foreground.",
     .details = "The store ends at SIGINT or SIGTERM, and the command ends by that signal. When "
                "the store listens, the command prints one line, such as `rankctl: store at "
                "127.0.0.1:29500`. It raises its own limit of open files to the hard limit."
                "\n\nA _SIZE_ is a number of bytes, or of units of 1024: `512`, `8K`, `64M`, `1G`, "
                "`2T`.",
     .flags = kServe,
     .run = RunServe},
    {.title = "rankctl store get",
     .name = "get",
     .operands = "KEY",
     .least_operands = 1,
     .most_operands = 1,
     .help = "Wait until a key is set and print its value.",
     .details = "The output is exactly the bytes of the value; a newline follows if standard "
                "output is a terminal. A queue of that name is not a key.",
     .flags = kGet,
     .run = RunGet},
    {.title = "rankctl store set",
     .name = "set",
     .operands = "KEY VALUE",
     .least_operands = 2,
     .most_operands = 2,
     .help = "Set the value of a key; `-` reads the value from standard input.",
     .details = "The command succeeds when the server has accepted the value.",
     .flags = kSet,
     .run = RunSet},
    {.title = "rankctl store add",
     .name = "add",
     .operands = "KEY [N]",
     .least_operands = 1,
     .most_operands = 2,
     .help = "Add _N_, by default 1, to the number at a key and print the sum.",
     .details = "The number is decimal. A key that is not set counts as 0.",
     .flags = kOther,
     .run = RunAdd},
    {.title = "rankctl store wait",
     .name = "wait",
     .operands = "KEY...",
     .least_operands = 1,
     .most_operands = kAny,
     .help = "Wait until all keys are set.",
     .details = "When the time is up, the command names the keys that are not set. As for "
                "PyTorch's `wait`, a queue that is not empty counts as a key that is set.",
     .flags = kOther,
     .run = RunWait},
    {.title = "rankctl store del",
     .name = "del",
     .operands = "KEY...",
     .least_operands = 1,
     .most_operands = kAny,
     .help = "Delete keys.",
     .details = "The command names keys that were not set.",
     .flags = kOther,
     .run = RunDel},
    {.title = "rankctl store list",
     .name = "list",
     .operands = "[GLOB]",
     .most_operands = 1,
     .help = "Print the keys that match a pattern, sorted, one per line.",
     .details = "In a pattern, `*` stands for any text, `/` included; `?` and `[...]` are as in a "
                "shell, but match one byte, and a letter of UTF-8 may have several bytes. Queues "
                "are not keys. Servers older than PyTorch 2.10 cannot list their keys.",
     .flags = kList,
     .run = RunList},
    {.title = "rankctl store stats",
     .name = "stats",
     .help = "Print statistics of the server.",
     .details = "A server of rankrun reports its uptime, keys, queues, bytes, connections, "
                "requests by kind, connections that it closed by cause, and the clients that wait "
                "for each key. The key with the most clients comes first, and keys are shown as "
                "the server has them. Other servers report nothing; rankctl requests all their "
                "keys and counts keys and bytes.",
     .flags = kStats,
     .run = RunStats},
    {.title = "rankctl store watch",
     .name = "watch",
     .operands = "KEY...",
     .least_operands = 1,
     .most_operands = kAny,
     .help = "Print each change of the keys, until interrupted.",
     .details = "Each line has the time (UTC), the event, the key and the value, separated by "
                "tabs. Events are `is` (the value when the watch begins), `set`, `changed` and "
                "`deleted`. The protocol cannot push changes, so rankctl polls the keys. Several "
                "changes between two polls appear as one. If there is a single key, its creation "
                "is reported at once.",
     .flags = kWatch,
     .run = RunWatch},
};

}  // namespace

std::span<const Command> StoreCommands() { return kCommands; }

}  // namespace rankrun::cli

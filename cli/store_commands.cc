#include "cli/store_commands.h"

#include <array>
#include <cstdint>

#include "cli/store_serve.h"

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

constexpr Flag Size(std::string_view name, std::string_view default_value, std::string_view help) {
  return {name, 0, FlagValue::kSize, 0, 0, "SIZE", default_value, false, help};
}

constexpr Flag kHelp{"help", 'h',   FlagValue::kNone,           0, 0, "",
                     "",     false, "Print this text and exit."};

constexpr std::array kServe{
    Flag{"host", 0, FlagValue::kText, 0, 0, "ADDR", "127.0.0.1 and ::1", false,
         "Listen there: an address, a name, or all. May be given several times."},
    Flag{"port", 0, FlagValue::kPort, 0, 0, "PORT", "29500", false, "0 is a free one."},
    Flag{"port-file", 0, FlagValue::kText, 0, 0, "FILE", "", false,
         "Write the port there once the store listens."},
    Size("max-key", "8K", "The largest key."),
    Size("max-value", "64M", "The largest value; at most 1G."),
    Flag{"max-connections", 0, FlagValue::kCount, 1, 10'000'000, "N", "65536", false,
         "More are refused."},
    Size("max-bytes", "4G", "What all keys, values and waits may take."),
    Size("max-traffic", "4G", "What requests and replies under way may take."),
    kHelp};

constexpr Command kCommands[] = {
    {"rankctl store serve", "serve", "", 0, 0, "Host a store in the foreground.", kServe, RunServe},
};

}  // namespace

std::span<const Command> StoreCommands() { return kCommands; }

}  // namespace rankrun::cli

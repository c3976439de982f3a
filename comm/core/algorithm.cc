#include "comm/core/algorithm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "base/parse_number.h"
#include "base/printable.h"

namespace rankrun::comm {
namespace {

struct Entry {
  std::string_view key;
  size_t& (*value)(AlgorithmTable& table);
  size_t min = 0;
  std::string_view wanted = "a number of bytes";
};

constexpr std::string_view kRanks = "a number of ranks";

constexpr std::array<Entry, 10> kEntries{{
    {"all_reduce.doubling", [](AlgorithmTable& t) -> size_t& { return t.all_reduce_doubling; }},
    {"all_reduce.doubling_of_two",
     [](AlgorithmTable& t) -> size_t& { return t.all_reduce_doubling_of_two; }},
    {"all_reduce.halving", [](AlgorithmTable& t) -> size_t& { return t.all_reduce_halving; }},
    {"all_gather.direct", [](AlgorithmTable& t) -> size_t& { return t.all_gather_direct; }},
    {"all_gather.direct_ranks",
     [](AlgorithmTable& t) -> size_t& { return t.all_gather_direct_ranks; }, 0, kRanks},
    {"all_gather.bruck", [](AlgorithmTable& t) -> size_t& { return t.all_gather_bruck; }},
    {"all_to_all.direct", [](AlgorithmTable& t) -> size_t& { return t.all_to_all_direct; }},
    {"broadcast.tree", [](AlgorithmTable& t) -> size_t& { return t.broadcast_tree; }},
    {"broadcast.piece", [](AlgorithmTable& t) -> size_t& { return t.broadcast_piece; }, 1,
     "a number of bytes, at least 1"},
    {"reduce.tree", [](AlgorithmTable& t) -> size_t& { return t.reduce_tree; }},
}};

constexpr std::string_view kBlanks = " \t\n";
constexpr size_t kMaxShown = 60;  // characters of a wrong entry in a message

std::string Quoted(std::string_view text) { return "\"" + EscapedAndCut(text, kMaxShown) + "\""; }

Error UnknownKey(std::string_view key) {
  std::string message = "there is no algorithm " + Quoted(key) + "; want one of";
  for (const Entry& entry : kEntries) message += " " + std::string(entry.key);
  return {ErrorCode::kInvalid, message};
}

// Sets the value of one entry, as "broadcast.tree=0". `seen` are the keys of
// the entries before.
Result<void> Set(std::string_view text, AlgorithmTable& table, std::set<std::string_view>& seen) {
  size_t sign = text.find('=');
  if (sign == std::string_view::npos) {
    return Error{ErrorCode::kInvalid, "there is no \"=\" in " + Quoted(text) +
                                          "; want KEY=VALUE, as all_reduce.doubling=16384"};
  }
  std::string_view key = text.substr(0, sign);
  const auto* entry = std::ranges::find(kEntries, key, &Entry::key);
  if (entry == kEntries.end()) return UnknownKey(key);
  if (!seen.insert(entry->key).second) {
    return Error{ErrorCode::kInvalid, std::string(key) + " is there twice; want it once"};
  }
  std::string_view value = text.substr(sign + 1);
  auto number = ParseNumber<size_t>(value);
  if (!number || *number < entry->min) {
    return Error{ErrorCode::kInvalid, std::string(key) + " is " + Quoted(value) + "; want " +
                                          std::string(entry->wanted)};
  }
  entry->value(table) = *number;
  return {};
}

}  // namespace

AllReduceAlgorithm ChooseAllReduce(int ranks, size_t bytes, const AlgorithmTable& table) {
  size_t doubling = ranks > 2 ? table.all_reduce_doubling : table.all_reduce_doubling_of_two;
  if (bytes <= doubling) return AllReduceAlgorithm::kDoubling;
  bool is_power_of_two = std::has_single_bit(static_cast<unsigned int>(ranks));
  if (is_power_of_two && bytes <= table.all_reduce_halving) return AllReduceAlgorithm::kHalving;
  return AllReduceAlgorithm::kRing;
}

ReduceAlgorithm ChooseReduce(size_t bytes, const AlgorithmTable& table) {
  return bytes <= table.reduce_tree ? ReduceAlgorithm::kTree : ReduceAlgorithm::kRing;
}

BroadcastAlgorithm ChooseBroadcast(int ranks, size_t bytes, const AlgorithmTable& table) {
  bool is_large = bytes > table.broadcast_tree;
  return is_large && ranks > 2 ? BroadcastAlgorithm::kChain : BroadcastAlgorithm::kTree;
}

int ChainPieces(size_t bytes, const AlgorithmTable& table) {
  size_t pieces = bytes / table.broadcast_piece + (bytes % table.broadcast_piece > 0 ? 1 : 0);
  return static_cast<int>(std::clamp(pieces, size_t{1}, size_t{kMaxChainPieces}));
}

ExchangeAlgorithm ChooseAllGather(int ranks, size_t block_bytes, const AlgorithmTable& table) {
  bool is_direct = static_cast<size_t>(ranks) <= table.all_gather_direct_ranks;
  if (is_direct && block_bytes <= table.all_gather_direct) return ExchangeAlgorithm::kDirect;
  if (!is_direct && block_bytes <= table.all_gather_bruck) return ExchangeAlgorithm::kBruck;
  return ExchangeAlgorithm::kPairwise;
}

ExchangeAlgorithm ChooseAllToAll(size_t block_bytes, const AlgorithmTable& table) {
  return block_bytes <= table.all_to_all_direct ? ExchangeAlgorithm::kDirect
                                                : ExchangeAlgorithm::kPairwise;
}

Result<AlgorithmTable> ParseAlgorithms(std::string_view text) {
  AlgorithmTable table;
  std::set<std::string_view> seen;
  for (size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;
       begin = text.find_first_not_of(kBlanks, begin)) {
    size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    auto ok = Set(text.substr(begin, end - begin), table, seen);
    if (!ok) return std::move(ok).error();
    begin = end;
  }
  return table;
}

std::string FormatAlgorithms(const AlgorithmTable& table) {
  AlgorithmTable copy = table;
  std::string text;
  for (const Entry& entry : kEntries) {
    if (!text.empty()) text += " ";
    text += std::string(entry.key) + "=" + std::to_string(entry.value(copy));
  }
  return text;
}

}  // namespace rankrun::comm

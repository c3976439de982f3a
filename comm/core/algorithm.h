#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

// Choice of the schedule of a collective by the number of ranks and the size of
// the data. Pure.
namespace rankrun::comm {

enum class AllReduceAlgorithm : uint8_t { kDoubling, kHalving, kRing };
// For all-gather, and for all-to-all, which has no kBruck.
enum class ExchangeAlgorithm : uint8_t { kDirect, kBruck, kPairwise };
enum class BroadcastAlgorithm : uint8_t { kTree, kChain };
enum class ReduceAlgorithm : uint8_t { kTree, kRing };

constexpr size_t kDoublingBytes = size_t{32} << 10;
constexpr size_t kDoublingOfTwoBytes = size_t{128} << 10;
constexpr size_t kHalvingBytes = size_t{256} << 10;
constexpr size_t kDirectBytes = size_t{4} << 10;
constexpr size_t kBruckBytes = size_t{4} << 10;
constexpr size_t kDirectRanks = 16;
constexpr size_t kBroadcastTreeBytes = size_t{64} << 10;
constexpr size_t kBroadcastPieceBytes = size_t{64} << 10;
constexpr size_t kReduceTreeBytes = size_t{16} << 10;

// Largest sizes, in bytes, for which each algorithm is chosen. 0 switches an
// algorithm off for all but empty data. Must be the same on all ranks of a
// group.
struct AlgorithmTable {
  size_t all_reduce_doubling = kDoublingBytes;  // among more than two ranks
  // Between two ranks doubling moves no more bytes than the others, in fewer messages.
  size_t all_reduce_doubling_of_two = kDoublingOfTwoBytes;
  size_t all_reduce_halving = kHalvingBytes;  // if the number of ranks is a power of two
  // Sizes of the largest block. Up to all_gather_direct_ranks ranks gather directly,
  // more ranks by Bruck.
  size_t all_gather_direct = kDirectBytes;
  size_t all_gather_direct_ranks = kDirectRanks;
  size_t all_gather_bruck = kBruckBytes;
  size_t all_to_all_direct = kDirectBytes;  // size of the largest block
  size_t broadcast_tree = kBroadcastTreeBytes;
  size_t broadcast_piece = kBroadcastPieceBytes;  // size of a piece of a chain; at least 1
  size_t reduce_tree = kReduceTreeBytes;

  bool operator==(const AlgorithmTable&) const = default;
};

// Choose for `bytes` of data. Try the thresholds of all-reduce in the order of
// AllReduceAlgorithm.
AllReduceAlgorithm ChooseAllReduce(int ranks, size_t bytes, const AlgorithmTable& table);
ReduceAlgorithm ChooseReduce(size_t bytes, const AlgorithmTable& table);
// Two ranks have no use for a chain.
BroadcastAlgorithm ChooseBroadcast(int ranks, size_t bytes, const AlgorithmTable& table);
// Returns the number of pieces for a chain: 1 .. kMaxChainPieces.
int ChainPieces(size_t bytes, const AlgorithmTable& table);
constexpr int kMaxChainPieces = 4096;

// Choose by the bytes of the largest block. Bruck's all-gather needs equal blocks
// and the same choice on all ranks; the other exchanges fit together.
ExchangeAlgorithm ChooseAllGather(int ranks, size_t block_bytes, const AlgorithmTable& table);
ExchangeAlgorithm ChooseAllToAll(size_t block_bytes, const AlgorithmTable& table);

// Parses entries as "all_reduce.doubling=16384 broadcast.tree=0", separated by
// blanks; values are decimal. The other entries keep their defaults.
// Errors: kInvalid; the message has the wrong entry and what it may be.
Result<AlgorithmTable> ParseAlgorithms(std::string_view text);

// Returns all entries as a text that ParseAlgorithms accepts.
std::string FormatAlgorithms(const AlgorithmTable& table);

}  // namespace rankrun::comm

#include "comm/core/transfers.h"

#include <gtest/gtest.h>

#include "comm/core/device_backend.h"

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;

// Blocks of 10 * number + rank bytes, for collectives of three ranks.
Block Output(int rank) { return {nullptr, static_cast<size_t>(10 + rank)}; }
ConstBlock Input(int rank) { return {nullptr, static_cast<size_t>(20 + rank)}; }

DeviceCall CallOf(Kind kind, std::vector<Block> outputs, std::vector<ConstBlock> inputs) {
  Operation operation{.kind = kind};
  operation.root = 1;
  return {.operation = operation, .outputs = std::move(outputs), .inputs = std::move(inputs)};
}

using Sizes = std::vector<size_t>;

std::pair<Sizes, Sizes> SentAndReceived(const DeviceCall& call, int rank) {
  std::pair<Sizes, Sizes> sizes;
  Transfers all = TransfersOf(call.data(), rank, 3);
  for (const ConstBlock& block : all.sends) sizes.first.push_back(block.bytes);
  for (const Block& block : all.receives) sizes.second.push_back(block.bytes);
  return sizes;
}

const std::vector<Block> kOutputs{Output(0), Output(1), Output(2)};
const std::vector<ConstBlock> kInputs{Input(0), Input(1), Input(2)};

TEST(TransfersTest, AllGatherSendsOneBlockToAll) {
  EXPECT_EQ(SentAndReceived(CallOf(Kind::kAllGather, kOutputs, {Input(2)}), 2),
            std::pair(Sizes({22, 22, 22}), Sizes({10, 11, 12})));
}

TEST(TransfersTest, GatherSendsToTheRootOnly) {
  EXPECT_EQ(SentAndReceived(CallOf(Kind::kGather, {}, {Input(2)}), 2),
            std::pair(Sizes({0, 22, 0}), Sizes({0, 0, 0})));
  EXPECT_EQ(SentAndReceived(CallOf(Kind::kGather, kOutputs, {Input(1)}), 1),
            std::pair(Sizes({0, 21, 0}), Sizes({10, 11, 12})));
}

TEST(TransfersTest, ScatterReceivesFromTheRootOnly) {
  EXPECT_EQ(SentAndReceived(CallOf(Kind::kScatter, {Output(2)}, {}), 2),
            std::pair(Sizes({0, 0, 0}), Sizes({0, 12, 0})));
  EXPECT_EQ(SentAndReceived(CallOf(Kind::kScatter, {Output(1)}, kInputs), 1),
            std::pair(Sizes({20, 21, 22}), Sizes({0, 11, 0})));
}

TEST(TransfersTest, AllToAllHasABlockForEachPair) {
  EXPECT_EQ(SentAndReceived(CallOf(Kind::kAllToAll, kOutputs, kInputs), 0),
            std::pair(Sizes({20, 21, 22}), Sizes({10, 11, 12})));
}

}  // namespace
}  // namespace rankrun::comm

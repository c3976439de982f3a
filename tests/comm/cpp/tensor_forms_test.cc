// Forms in which a program may write the tensors, lists and messages of a call.

#include <gmock/gmock.h>

#include <array>
#include <complex>
#include <cstddef>
#include <span>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kRanks = 2;

TEST(TensorFormsTest, AnyMemoryOfElementsIsATensor) {
  auto sums = InWorld(kRanks, "shm", [](ProcessGroup& world) {
    const int mine = world.global_rank() + 1;
    double loss = mine;
    std::array<double, 2> array{1. * mine, 10. * mine};
    long long c_array[] = {mine, 20 * mine};
    std::vector<unsigned long long> vector(1, 30U * static_cast<unsigned>(mine));
    short few[] = {static_cast<short>(mine), 0};
    world.AllReduce(loss);
    world.AllReduce(array);
    world.AllReduce(c_array);
    world.AllReduce(vector);
    world.AllReduce(std::span<short, 2>(few));
    return ::testing::PrintToString(
        std::vector<double>{loss, array[1], static_cast<double>(c_array[1]),
                            static_cast<double>(vector[0]), static_cast<double>(few[0])});
  });
  EXPECT_THAT(sums, Each("{ 3, 30, 60, 90, 3 }"));
}

TEST(TensorFormsTest, ElementTypesAreFoundBySizeAndSign) {
  EXPECT_EQ(FindDType<long long>(), DType::kInt64);
  EXPECT_EQ(FindDType<unsigned long>(), DType::kUInt64);
  EXPECT_EQ(FindDType<signed char>(), DType::kInt8);
  EXPECT_EQ(FindDType<unsigned char>(), DType::kUInt8);
  EXPECT_EQ(FindDType<std::byte>(), DType::kUInt8);
  EXPECT_EQ(FindDType<std::complex<double>>(), DType::kComplex128);
#ifdef RANKRUN_HAS_FLOAT16
  EXPECT_EQ(FindDType<_Float16>(), DType::kFloat16);
#endif
  EXPECT_EQ(FindDType<char>(), std::nullopt);
  EXPECT_EQ(FindDType<char16_t>(), std::nullopt);
  EXPECT_EQ(FindDType<long double>(), std::nullopt);
  EXPECT_EQ(FindDType<float*>(), std::nullopt);
}

TEST(TensorFormsTest, ListsMayBeWrittenInPlace) {
  auto told = InWorld(kRanks, "shm", [](ProcessGroup& world) {
    const int mine = world.global_rank() + 1;
    std::vector<int> first(1), second(2);
    std::vector<int> input(static_cast<size_t>(mine), mine);
    world.AllGather({first, second}, input);
    std::vector<int> part(1);
    std::vector<Tensor> parts;
    if (mine == 1) parts = {first, std::span(second).first(1)};
    world.Scatter(part, parts);
    std::vector<int> rows{mine, 10 * mine, 20 * mine}, received(mine == 1 ? 2 : 4);
    const std::vector<short> from_each =
        mine == 1 ? std::vector<short>{1, 1} : std::vector<short>{2, 2};
    world.AllToAllSingle(received, rows, from_each, {1, 2});
    return ::testing::PrintToString(
        std::vector<int>{first[0], second[1], part[0], received.back()});
  });
  EXPECT_THAT(told, ElementsAre("{ 1, 2, 1, 2 }", "{ 1, 2, 2, 40 }"));
}

TEST(TensorFormsTest, ABatchSendsConstDataAndReceivesFromAnyRank) {
  auto received = InWorld(kRanks, "shm", [](ProcessGroup& world) {
    const std::vector<int> mine(1, world.global_rank() + 5);
    int theirs = 0;
    const P2POp messages[] = {
        {.kind = P2POp::Kind::kSend, .tensor = mine, .peer = GlobalRank{1 - world.global_rank()}},
        {.kind = P2POp::Kind::kRecv, .tensor = theirs}};
    for (const Work& work : world.Batch(messages)) work.Wait();
    return std::to_string(theirs);
  });
  EXPECT_THAT(received, ElementsAre("6", "5"));
}

TEST(TensorFormsTest, ABatchRefusesWhatItCannotDo) {
  auto told = InWorld(1, "shm", [](ProcessGroup& world) {
    const int mine = 0;
    int theirs = 0;
    const P2POp into_const[] = {{.kind = P2POp::Kind::kRecv, .tensor = mine}};
    const P2POp to_any[] = {{.kind = P2POp::Kind::kSend, .tensor = theirs}};
    return ErrorOf([&] { world.Batch(into_const); }) + "; " + ErrorOf([&] { world.Batch(to_any); });
  });
  EXPECT_THAT(told[0], HasSubstr("message 0: the tensor of a receive is const; "));
  EXPECT_THAT(told[0], HasSubstr("message 0: a send has no peer: want a rank"));
}

}  // namespace
}  // namespace rankrun::comm

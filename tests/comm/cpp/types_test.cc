// Every element type with every reduction that it supports, from the call to
// the result, on both backends. reduction_test.cc tests the kernels alone.

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <rankrun/distributed.h>

#include "comm/core/operation.h"
#include "comm/reduce/reduction.h"
#include "tests/comm/reduce/naive_reduction.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using Bytes = std::vector<std::byte>;
using Kind = Operation::Kind;

constexpr int kRanks = 4;
constexpr int kRoot = 2;

// Bytes of a tensor, one size for each algorithm of shm: a full call line,
// flat, several chunks with an uneven end. (A reduce-scatter uses only the
// last.)
constexpr size_t kInLine = 112;
constexpr size_t kFlat = 5'008;
constexpr size_t kChunks = 600 * 1024 + 48;

// Reduction of tensors of `bytes`, with the number of the call.
struct Case {
  DType dtype;
  ReduceOp::Kind op;
  size_t bytes;
  uint64_t number = 0;

  bool is_bool() const { return dtype == DType::kBool; }
  bool is_float() const { return !is_bool() && Lower(dtype, ReduceOp::kPremulSum, kRanks); }
  bool is_unsigned() const { return dtype >= DType::kUInt8 && dtype <= DType::kUInt64; }
  size_t count() const { return bytes / SizeOf(dtype); }
  // 2 for a complex number.
  size_t reals_per_element() const {
    return static_cast<size_t>(Lower(dtype, op, kRanks)->per_element);
  }
};

// Returns a rank's input for one real. Values are so small that no type rounds
// or overflows, in any order. They differ between calls, so that stale data is
// found.
double ValueOf(const Case& one, int rank, size_t real) {
  uint64_t place = (real + 1) * static_cast<uint64_t>(2 * rank + 3) + one.number * 1009;
  uint64_t small = (place * 0x9e3779b97f4a7c15 >> 32) % 4;
  if (one.is_bool()) return static_cast<double>(small % 2);
  return static_cast<double>(small) - (one.is_unsigned() ? 0 : 1);
}

double Reduced(const Case& one, size_t real) {
  std::array<double, kRanks> values{};
  for (int r = 0; r < kRanks; ++r) values[static_cast<size_t>(r)] = ValueOf(one, r, real);
  auto all = [&](double first, const auto& combine) {
    for (double value : values) first = combine(first, value);
    return first;
  };
  auto bitwise = [&](int64_t first, const auto& combine) {
    for (double value : values) first = combine(first, static_cast<int64_t>(value));
    return static_cast<double>(first);
  };
  double sum = all(0, std::plus<>());
  switch (one.op) {
    case ReduceOp::kSum:
      return one.is_bool() ? std::min(sum, 1.0) : sum;
    case ReduceOp::kAvg:
      return one.is_float() ? sum / kRanks : std::trunc(sum / kRanks);
    case ReduceOp::kProduct:
      return all(1, std::multiplies<>());
    case ReduceOp::kMin:
      return std::ranges::min(values);
    case ReduceOp::kMax:
      return std::ranges::max(values);
    case ReduceOp::kBitAnd:
      return bitwise(-1, std::bit_and<>());
    case ReduceOp::kBitOr:
      return bitwise(0, std::bit_or<>());
    case ReduceOp::kBitXor:
      return bitwise(0, std::bit_xor<>());
    case ReduceOp::kPremulSum:
      return values[0] + 2 * values[1] + 3 * values[2] + 4 * values[3];
  }
  __builtin_unreachable();
}

ReduceOp OpOf(const Case& one, int rank) {
  return one.op == ReduceOp::kPremulSum ? ReduceOp::PremulSum(rank + 1) : ReduceOp(one.op);
}

template <typename T>
void Append(Bytes& bytes, T element) {
  const auto* first = reinterpret_cast<const std::byte*>(&element);
  bytes.insert(bytes.end(), first, first + sizeof element);
}

// Appends a value as an element of that type, or as one half of a complex
// element.
void Append(Bytes& bytes, DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return Append(bytes, static_cast<float>(value));
    case DType::kFloat64:
    case DType::kComplex128:
      return Append(bytes, value);
    case DType::kFloat16:
      return Append(bytes, naive::BitsOf(naive::kHalf, value));
    case DType::kBFloat16:
      return Append(bytes, naive::BitsOf(naive::kBrain, value));
    case DType::kInt8:
      return Append(bytes, static_cast<int8_t>(value));
    case DType::kInt16:
      return Append(bytes, static_cast<int16_t>(value));
    case DType::kInt32:
      return Append(bytes, static_cast<int32_t>(value));
    case DType::kInt64:
      return Append(bytes, static_cast<int64_t>(value));
    case DType::kUInt8:
    case DType::kBool:
      return Append(bytes, static_cast<uint8_t>(value));
    case DType::kUInt16:
      return Append(bytes, static_cast<uint16_t>(value));
    case DType::kUInt32:
      return Append(bytes, static_cast<uint32_t>(value));
    case DType::kUInt64:
      return Append(bytes, static_cast<uint64_t>(value));
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      break;  // not reduced
  }
  std::abort();
}

// Returns `count` elements from `first` on as bytes.
template <typename ValueAt>
Bytes Encoded(const Case& one, size_t first, size_t count, const ValueAt& value_at) {
  size_t reals = one.reals_per_element();
  Bytes bytes;
  bytes.reserve(count * SizeOf(one.dtype));
  for (size_t i = first * reals; i < (first + count) * reals; ++i) {
    Append(bytes, one.dtype, value_at(i));
  }
  return bytes;
}
Bytes InputOf(const Case& one, int rank, size_t count) {
  return Encoded(one, 0, count, [&](size_t i) { return ValueOf(one, rank, i); });
}
Bytes ResultOf(const Case& one, size_t first, size_t count) {
  return Encoded(one, first, count, [&](size_t i) { return Reduced(one, i); });
}

Tensor TensorOf(const Case& one, Bytes& bytes) {
  return {bytes.data(), one.dtype, bytes.size() / SizeOf(one.dtype)};
}

// Returns "AllReduce (28 x float32, sum) is wrong at 5", or an empty text.
std::string Wrong(Kind kind, const Case& one, const Bytes& got, const Bytes& wanted) {
  auto differs = std::ranges::mismatch(got, wanted).in1;
  if (differs == got.end()) return "";
  size_t size = SizeOf(one.dtype);
  return Describe({.kind = kind, .dtype = one.dtype, .op = one.op, .count = got.size() / size}) +
         " is wrong at " + std::to_string(static_cast<size_t>(differs - got.begin()) / size) + "\n";
}

std::string AllReduces(ProcessGroup& world, const Case& one) {
  Bytes data = InputOf(one, world.global_rank(), one.count());
  world.AllReduce(TensorOf(one, data), OpOf(one, world.global_rank()));
  return Wrong(Kind::kAllReduce, one, data, ResultOf(one, 0, one.count()));
}

std::string Reduces(ProcessGroup& world, const Case& one) {
  Bytes input = InputOf(one, world.global_rank(), one.count());
  Bytes data = input;
  world.Reduce(TensorOf(one, data), GlobalRank{kRoot}, OpOf(one, world.global_rank()));
  bool at_root = world.global_rank() == kRoot;
  return Wrong(Kind::kReduce, one, data, at_root ? ResultOf(one, 0, one.count()) : input);
}

std::string ReduceScatters(ProcessGroup& world, const Case& one) {
  size_t part = one.count() / kRanks;
  Bytes input = InputOf(one, world.global_rank(), part * kRanks);
  Bytes output(part * SizeOf(one.dtype), std::byte{77});
  world.ReduceScatterFrom(TensorOf(one, output), TensorOf(one, input),
                          OpOf(one, world.global_rank()));
  size_t first = part * static_cast<size_t>(world.global_rank());
  return Wrong(Kind::kReduceScatter, one, output, ResultOf(one, first, part));
}

// Returns all failures and "done", which is missing if the rank dies.
std::string AllOfThem(ProcessGroup& world, std::vector<Case> cases) {
  std::string said;
  uint64_t number = 0;
  for (Case& one : cases) {
    one.number = ++number;
    said += AllReduces(world, one);
    said += Reduces(world, one);
    said += ReduceScatters(world, one);
  }
  return said + "done";
}

struct TypesTest : testing::TestWithParam<const char*> {
  static std::vector<std::string> Told(const std::vector<Case>& cases) {
    return InWorld(kRanks, GetParam(),
                   [&](ProcessGroup& world) { return AllOfThem(world, cases); });
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, TypesTest, testing::Values("shm", "tcp", "hierarchical", "gloo"),
                         NameOfBackend);

// Returns all supported reductions, with tensors of `bytes`.
std::vector<Case> AllCases(size_t bytes) {
  std::vector<Case> cases;
  for (int dtype = 0; dtype < kDTypes; ++dtype) {
    for (int op = 0; op <= ReduceOp::kPremulSum; ++op) {
      Case one{static_cast<DType>(dtype), static_cast<ReduceOp::Kind>(op), bytes};
      if (Lower(one.dtype, one.op, kRanks)) cases.push_back(one);
    }
  }
  return cases;
}

// Floats have no bitwise reductions, integers no premul_sum, booleans no
// premul_sum and no average. Complex numbers have sums only.
constexpr size_t kReductions = 4 * 6 + 8 * 8 + 7 + 2 * 3;

TEST_P(TypesTest, EveryTypeHasItsReductionsInTheCallLine) {
  auto cases = AllCases(kInLine);
  EXPECT_EQ(cases.size(), kReductions);
  EXPECT_THAT(Told(cases), Each("done"));
}

TEST_P(TypesTest, EveryTypeHasItsReductionsOfAFewKilobytes) {
  EXPECT_THAT(Told(AllCases(kFlat)), Each("done"));
}

#ifdef RANKRUN_SANITIZED
constexpr DType kFew[] = {DType::kBFloat16};  // the test itself takes a minute for all
constexpr size_t kFewCases = 2;
#else
constexpr DType kFew[] = {DType::kBFloat16, DType::kFloat16, DType::kFloat32, DType::kInt8,
                          DType::kComplex128};
constexpr size_t kFewCases = 9;
#endif

TEST_P(TypesTest, LargeOnesAreReducedInSeveralChunks) {
  std::vector<Case> cases;
  for (const Case& one : AllCases(kChunks)) {
    if (std::ranges::find(kFew, one.dtype) == std::end(kFew)) continue;
    if (one.op == ReduceOp::kSum || one.op == ReduceOp::kMax) cases.push_back(one);
  }
  EXPECT_EQ(cases.size(), kFewCases);
  EXPECT_THAT(Told(cases), Each("done"));
}

// A large number whose successor is larger by 2, and three ones. Each one is
// lost if it is added and rounded separately.
struct Rounding {
  DType dtype;
  naive::SmallFormat format;
  double large;
  size_t count;

  double Sum() const { return large + 3; }
};

// Returns a hash of the resulting bits, and the violations of reduce_op.h.
std::string RoundedAs(const std::string& backend, ProcessGroup& world, const Rounding& one) {
  std::vector<uint16_t> data(one.count);
  for (size_t i = 0; i < one.count; ++i) {
    bool has_the_large = i % kRanks == static_cast<size_t>(world.global_rank());
    data[i] = naive::BitsOf(one.format, has_the_large ? one.large : 1);
  }
  world.AllReduce({data.data(), one.dtype, one.count});
  size_t rounded_once = 0;
  double worst = 0;
  for (uint16_t bits : data) {
    rounded_once += bits == naive::BitsOf(one.format, one.Sum()) ? 1 : 0;
    worst = std::max(worst, std::fabs(naive::ValueOf(one.format, bits) - one.Sum()));
  }
  std::string_view all(reinterpret_cast<const char*>(data.data()), 2 * one.count);
  std::string said = std::to_string(one.count) + " x " + NameOf(one.dtype) + ": " +
                     std::to_string(std::hash<std::string_view>()(all));
  bool all_once = rounded_once == one.count;
  if (all_once != (backend == "shm")) said += all_once ? ", WRONG: once" : ", WRONG: on the way";
  // A sum passes three ranks, each of which loses at most half of 2.
  if (worst > 3) said += ", WRONG by " + std::to_string(worst);
  return said + "\n";
}

TEST_P(TypesTest, ShmRoundsSmallFloatsOnceAndGlooAtEachRankOnTheWay) {
  auto told = InWorld(kRanks, GetParam(), [](ProcessGroup& world) {
    std::string said;
    for (size_t bytes : {kInLine, kFlat, kChunks}) {
      size_t count = bytes / 2;
      said += RoundedAs(GetParam(), world, {DType::kBFloat16, naive::kBrain, 256, count});
      said += RoundedAs(GetParam(), world, {DType::kFloat16, naive::kHalf, 2048, count});
    }
    return said + "done";
  });
  EXPECT_THAT(told, Each(AllOf(told[0], EndsWith("done"), Not(HasSubstr("WRONG")))));
}

}  // namespace
}  // namespace rankrun::comm

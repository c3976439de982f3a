#include "bench/rankrun_bench/pattern.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace rankrun::bench {
namespace {

// An element during a computation: an integer modulo 2^64, and the same as a
// real number.
struct Value {
  uint64_t whole = 0;
  double real = 0;
};

bool IsInteger(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kUInt64; }
bool IsComplex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

// Returns 1 to 4; for products 1 or 2, because powers of two are exact in all
// types.
Value ValueAt(Source source, size_t index, uint64_t most) {
  uint64_t bits = index + 1;
  for (int part : {source.from, source.to, source.round}) {
    bits = (bits ^ static_cast<uint64_t>(part + 1)) * 0x9e3779b97f4a7c15;
    bits ^= bits >> 29;
  }
  uint64_t whole = 1 + bits % most;
  return {whole, static_cast<double>(whole)};
}

// Rounds to nearest, ties to even, and drops the lowest bits.
uint32_t Rounded(uint32_t bits, int dropped_bits) {
  uint32_t half = (1U << (dropped_bits - 1)) - 1;
  return (bits + half + ((bits >> dropped_bits) & 1)) >> dropped_bits;
}

// Converts to half precision; `value` must be 0 or in the range of normal half
// numbers.
uint16_t HalfBits(float value) {
  if (value == 0) return 0;
  uint32_t sign = std::bit_cast<uint32_t>(value) >> 31 << 15;
  uint32_t bits = std::bit_cast<uint32_t>(std::fabs(value));
  constexpr uint32_t kInfinity = 0x7c00;
  uint32_t half = Rounded(bits - (uint32_t{127 - 15} << 23), 13);
  return static_cast<uint16_t>(sign | std::min(half, kInfinity));
}

double HalfValue(uint16_t bits) {
  int exponent = bits >> 10 & 31;
  int mantissa = bits & 1023;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) value = mantissa == 0 ? INFINITY : NAN;
  return (bits & 0x8000) != 0 ? -value : value;
}

uint16_t BrainBits(float value) {
  return static_cast<uint16_t>(Rounded(std::bit_cast<uint32_t>(value), 16));
}
float BrainValue(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

template <typename T>
void Put(std::byte* place, T value) {
  std::memcpy(place, &value, sizeof value);
}
template <typename T>
T Take(const std::byte* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

void Encode(DType dtype, Value value, std::byte* place) {
  auto narrow = static_cast<float>(value.real);
  switch (dtype) {
    case DType::kFloat32:
      return Put(place, narrow);
    case DType::kFloat64:
      return Put(place, value.real);
    case DType::kFloat16:
      return Put(place, HalfBits(narrow));
    case DType::kBFloat16:
      return Put(place, BrainBits(narrow));
    case DType::kComplex64:
      Put(place, narrow);
      return Put(place + sizeof(float), 2 * narrow);
    case DType::kComplex128:
      Put(place, value.real);
      return Put(place + sizeof(double), 2 * value.real);
    case DType::kBool:
      return Put(place, static_cast<uint8_t>(value.whole != 0));
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      // The low bytes of a little-endian number are the narrower number.
      static_assert(std::endian::native == std::endian::little);
      std::memcpy(place, &value.whole, SizeOf(dtype));
      return;
  }
}

Value Combine(ReduceOp::Kind op, Value a, Value b) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
    case ReduceOp::kPremulSum:
      return {a.whole + b.whole, a.real + b.real};
    case ReduceOp::kProduct:
      return {a.whole * b.whole, a.real * b.real};
    case ReduceOp::kMin:
      return {std::min(a.whole, b.whole), std::min(a.real, b.real)};
    case ReduceOp::kMax:
      return {std::max(a.whole, b.whole), std::max(a.real, b.real)};
    case ReduceOp::kBitAnd:
      return {a.whole & b.whole, 0};
    case ReduceOp::kBitOr:
      return {a.whole | b.whole, 0};
    case ReduceOp::kBitXor:
      return {a.whole ^ b.whole, 0};
  }
  return {};
}

// For booleans, a sum is "or" and a product "and".
ReduceOp::Kind OpFor(DType dtype, ReduceOp::Kind op) {
  if (dtype != DType::kBool) return op;
  if (op == ReduceOp::kSum || op == ReduceOp::kMax) return ReduceOp::kBitOr;
  return op == ReduceOp::kProduct || op == ReduceOp::kMin ? ReduceOp::kBitAnd : op;
}

// Returns the value of one tile element before the reduction.
Value ElementAt(DType dtype, Source source, size_t index, uint64_t most) {
  Value value = ValueAt(source, index, most);
  if (dtype == DType::kBool) value.whole &= 1;
  return value;
}

uint64_t MostFor(ReduceOp::Kind op) { return op == ReduceOp::kProduct ? 2 : 4; }

double RealPart(DType dtype, const std::byte* place) {
  switch (dtype) {
    case DType::kFloat16:
      return HalfValue(Take<uint16_t>(place));
    case DType::kBFloat16:
      return BrainValue(Take<uint16_t>(place));
    case DType::kFloat64:
    case DType::kComplex128:
      return Take<double>(place);
    default:
      return Take<float>(place);
  }
}

// Returns the size of the last digit, relative to the number.
double Rounding(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBFloat16:
      return 0x1p-7;
    case DType::kFloat64:
    case DType::kComplex128:
      return std::numeric_limits<double>::epsilon();
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

// Returns whether two elements with different bytes are equal up to rounding.
bool IsNear(DType dtype, const std::byte* a, const std::byte* b) {
  if (IsInteger(dtype) || dtype == DType::kBool || dtype >= DType::kFloat8E4M3) return false;
  size_t parts = IsComplex(dtype) ? 2 : 1;
  for (size_t part = 0; part < parts; ++part) {
    size_t offset = part * SizeOf(dtype) / parts;
    double x = RealPart(dtype, a + offset);
    double y = RealPart(dtype, b + offset);
    if (!(std::fabs(x - y) <= 2 * Rounding(dtype) * std::fabs(y))) return false;
  }
  return true;
}

}  // namespace

std::vector<std::byte> Tile(DType dtype, Source source, ReduceOp::Kind op) {
  std::vector<std::byte> tile(kPeriod * SizeOf(dtype));
  for (size_t i = 0; i < kPeriod; ++i) {
    Encode(dtype, ElementAt(dtype, source, i, MostFor(op)), &tile[i * SizeOf(dtype)]);
  }
  return tile;
}

std::vector<std::byte> ReducedTile(DType dtype, ReduceOp::Kind op, int ranks, Source source) {
  std::vector<std::byte> tile(kPeriod * SizeOf(dtype));
  for (size_t i = 0; i < kPeriod; ++i) {
    source.from = 0;
    Value value = ElementAt(dtype, source, i, MostFor(op));
    for (source.from = 1; source.from < ranks; ++source.from) {
      value = Combine(OpFor(dtype, op), value, ElementAt(dtype, source, i, MostFor(op)));
    }
    if (op == ReduceOp::kAvg) {
      value = {value.whole / static_cast<uint64_t>(ranks), value.real / ranks};
    }
    Encode(dtype, value, &tile[i * SizeOf(dtype)]);
  }
  return tile;
}

void Fill(std::span<std::byte> buffer, std::span<const std::byte> tile) {
  for (size_t at = 0; at < buffer.size(); at += tile.size()) {
    std::memcpy(&buffer[at], tile.data(), std::min(tile.size(), buffer.size() - at));
  }
}

int64_t CountWrong(DType dtype, std::span<const std::byte> buffer,
                   std::span<const std::byte> tile) {
  size_t size = SizeOf(dtype);
  int64_t wrong = 0;
  for (size_t at = 0; at < buffer.size(); at += tile.size()) {
    size_t bytes = std::min(tile.size(), buffer.size() - at);
    if (std::memcmp(&buffer[at], tile.data(), bytes) == 0) continue;
    for (size_t i = 0; i < bytes; i += size) {
      bool same = std::memcmp(&buffer[at + i], &tile[i], size) == 0;
      wrong += !same && !IsNear(dtype, &buffer[at + i], &tile[i]);
    }
  }
  return wrong;
}

}  // namespace rankrun::bench

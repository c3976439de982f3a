#include "tests/comm/conformance.h"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/paths.h"

namespace rankrun::comm {
namespace {

DType DTypeOf(const Json& vector) {
  static const std::map<std::string, DType> kNames{
      {"f32", DType::kFloat32}, {"i32", DType::kInt32},     {"i64", DType::kInt64},
      {"bool", DType::kBool},   {"c64", DType::kComplex64},
  };
  return kNames.at(vector.at("dtype").get<std::string>());
}

void AppendNumbers(const Json& value, std::vector<double>& numbers) {
  if (value.is_array()) {
    for (const Json& each : value) AppendNumbers(each, numbers);
  } else if (value.is_boolean()) {
    numbers.push_back(value.get<bool>() ? 1 : 0);
  } else {
    numbers.push_back(value.get<double>());
  }
}

std::vector<double> NumbersIn(const Json& value) {
  std::vector<double> numbers;
  AppendNumbers(value, numbers);
  return numbers;
}

// Returns the bytes of one number; a complex element has two numbers.
size_t BytesOfNumber(DType dtype) {
  return dtype == DType::kComplex64 ? sizeof(float) : SizeOf(dtype);
}

template <typename T>
void Write(double number, std::byte* to) {
  T value = static_cast<T>(number);
  std::memcpy(to, &value, sizeof value);
}

template <typename T>
double Read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

void WriteNumber(DType dtype, double number, std::byte* to) {
  if (dtype == DType::kInt64) return Write<int64_t>(number, to);
  if (dtype == DType::kInt32) return Write<int32_t>(number, to);
  if (dtype == DType::kBool) return Write<uint8_t>(number, to);
  Write<float>(number, to);
}

double ReadNumber(DType dtype, const std::byte* from) {
  if (dtype == DType::kInt64) return Read<int64_t>(from);
  if (dtype == DType::kInt32) return Read<int32_t>(from);
  if (dtype == DType::kBool) return Read<uint8_t>(from);
  return Read<float>(from);
}

}  // namespace

const Json& Vectors() {
  static const Json vectors = [] {
    std::ifstream file(test::InSource("tests/comm/vectors.json"));
    return Json::parse(file);
  }();
  return vectors;
}

PlaceOfElements& ThePlaceOfElements() {
  static PlaceOfElements place;
  return place;
}

Elements::Elements(const Json& vector, const Json& values) : dtype_(DTypeOf(vector)) {
  std::vector<double> numbers = NumbersIn(values);
  size_t each = BytesOfNumber(dtype_);
  bytes_.resize(numbers.size() * each);
  for (size_t i = 0; i < numbers.size(); ++i) {
    WriteNumber(dtype_, numbers[i], bytes_.data() + i * each);
  }
}

Elements Elements::ToBecome(const Json& vector, const Json& values) {
  Elements elements(vector, values);
  for (std::byte& byte : elements.bytes_) byte = std::byte{0x77};
  return elements;
}

Tensor Elements::tensor() {
  Tensor tensor(bytes_.data(), dtype_, bytes_.size() / SizeOf(dtype_));
  tensor.device = ThePlaceOfElements().device;
  return tensor;
}

void Elements::Change(const std::function<double(double number)>& change) {
  ThePlaceOfElements().await();
  size_t each = BytesOfNumber(dtype_);
  for (size_t at = 0; at < bytes_.size(); at += each) {
    WriteNumber(dtype_, change(ReadNumber(dtype_, bytes_.data() + at)), bytes_.data() + at);
  }
}

std::string Elements::Differ(const Json& values) const {
  if (Numbers() == NumbersIn(values)) return "";
  return "got " + Json(Numbers()).dump() + ", want " + values.dump();
}

std::vector<double> Elements::Numbers() const {
  ThePlaceOfElements().await();
  std::vector<double> numbers;
  size_t each = BytesOfNumber(dtype_);
  for (size_t at = 0; at < bytes_.size(); at += each) {
    numbers.push_back(ReadNumber(dtype_, bytes_.data() + at));
  }
  return numbers;
}

const Json& OfRank(const Json& list, const ProcessGroup& group) {
  return list.at(static_cast<size_t>(group.global_rank()));
}

ReduceOp OpOf(const Json& vector, int global_rank) {
  static const std::map<std::string, ReduceOp::Kind> kNames{
      {"SUM", ReduceOp::kSum},   {"AVG", ReduceOp::kAvg},     {"PRODUCT", ReduceOp::kProduct},
      {"MIN", ReduceOp::kMin},   {"MAX", ReduceOp::kMax},     {"BAND", ReduceOp::kBitAnd},
      {"BOR", ReduceOp::kBitOr}, {"BXOR", ReduceOp::kBitXor},
  };
  auto name = vector.at("reduce").get<std::string>();
  if (name != "PREMUL_SUM") return kNames.at(name);
  return ReduceOp::PremulSum(vector.at("factor").at(static_cast<size_t>(global_rank)));
}

}  // namespace rankrun::comm

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory_resource>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <rankrun/process_group.h>

// Runner of the vectors in vectors.json. Each vector has the inputs and the
// expected outputs of all ranks.
namespace rankrun::comm {

using Json = nlohmann::json;

// Returns the vectors of vectors.json, which is read once per process: each test is a
// process, and lists all cases.
const Json& Vectors();

// Runs a vector on this rank. Returns the failure; empty: none.
using VectorRun = std::string (*)(ProcessGroup& world, const Json& vector);

// Functions by the "op" of their vectors.
const std::map<std::string, VectorRun>& CollectiveRuns();
const std::map<std::string, VectorRun>& MessageRuns();
const std::map<std::string, VectorRun>& ObjectRuns();
const std::map<std::string, VectorRun>& FailureRuns();

// Memory of all elements, which the host can access; that of std::pmr's default resource.
// `await` waits until the device is done with its work.
struct PlaceOfElements {
  Device device = {};
  void (*await)() = [] {};
};
PlaceOfElements& ThePlaceOfElements();

// Elements of a tensor in a vector: lists of numbers, complex ones as pairs.
// The nesting of the lists does not matter.
class Elements {
 public:
  Elements(const Json& vector, const Json& values);
  // Makes as many elements as `values` has, with other values.
  static Elements ToBecome(const Json& vector, const Json& values);

  Tensor tensor();
  void Change(const std::function<double(double number)>& change);  // each element in place
  // Returns "" if the elements equal `values`, otherwise both.
  std::string Differ(const Json& values) const;

 private:
  std::vector<double> Numbers() const;

  DType dtype_;
  std::pmr::vector<std::byte> bytes_;
};

// Returns the entry of this rank.
const Json& OfRank(const Json& list, const ProcessGroup& group);
ReduceOp OpOf(const Json& vector, int global_rank);

}  // namespace rankrun::comm

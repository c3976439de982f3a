#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <rankrun/process_group.h>

// What runs the vectors of vectors.json: each says what ranks put in, and what
// each of them gets out.
namespace rankrun::comm {

using Json = nlohmann::json;

// Runs a vector on this rank. Returns what is wrong; empty: nothing.
using VectorRun = std::string (*)(ProcessGroup& world, const Json& vector);

// By "op".
const std::map<std::string, VectorRun>& CollectiveRuns();
const std::map<std::string, VectorRun>& MessageRuns();
const std::map<std::string, VectorRun>& ObjectRuns();

// The elements of a tensor, as a vector has them: lists of numbers, complex
// ones as pairs; how the lists are nested does not matter.
class Elements {
 public:
  Elements(const Json& vector, const Json& values);
  // As many as `values` has, but none of these.
  static Elements ToBecome(const Json& vector, const Json& values);

  Tensor tensor();
  void Change(const std::function<double(double number)>& change);  // each, where it is
  // "" if they are `values`, else both.
  std::string Differ(const Json& values) const;

 private:
  std::vector<double> Numbers() const;

  DType dtype_;
  std::vector<std::byte> bytes_;
};

// The entry of this rank.
const Json& OfRank(const Json& list, const ProcessGroup& group);
ReduceOp OpOf(const Json& vector, int global_rank);

}  // namespace rankrun::comm

#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rankrun::agent {

// A value in a pickle.
struct PickleValue {
  enum class Kind { kNone, kBool, kInt, kFloat, kText, kList, kDict };

  Kind kind = Kind::kNone;
  int64_t number = 0;     // kBool, kInt
  double real = 0;        // kFloat
  std::string text = {};  // kText: texts and bytes
  // kList: lists and tuples. kDict: key, value, key, value ... A value may occur in several
  // places, and in itself.
  std::vector<const PickleValue*> items = {};

  // Returns the value of a key; null if this is no dict or has no such key.
  const PickleValue* Find(std::string_view key) const;
  // Returns the value of a key if it is of the kind; null if not.
  const PickleValue* Find(std::string_view key, Kind of) const;
};

// Python's serialization of plain data: None, bool, int, float, str, bytes, tuple, list and dict.
// Runs nothing: pickles that import or call something are refused. Pure.
// Source: CPython, Lib/pickletools.py
class Pickle {
 public:
  // Errors: kInvalid with the offset.
  static Result<Pickle> Read(std::string_view bytes);

  // Lives as long as this object.
  const PickleValue& root() const { return *root_; }

 private:
  friend class PickleReader;
  std::deque<PickleValue> values_;
  const PickleValue* root_ = nullptr;
};

}  // namespace rankrun::agent

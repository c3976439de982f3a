#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "python/native/interpreter.h"

namespace rankrun::python {

// Takes the arguments of a function one after the other. After the first wrong one an exception
// is set, and the others are zeros.
//
// A tensor is the tuple (address, count, row, dtype, owner) of rankrun_tensor, as view() makes it.
// Thread: with the interpreter's lock.
class Arguments {
 public:
  Arguments(PyObject* const* values, Py_ssize_t count) : values_(values), count_(count) {}

  PyObject* Object();  // borrowed
  int64_t Integer();
  int Int();
  uint16_t Port();
  bool Flag();
  double Number();
  const char* Text();        // lives as long as the argument
  const char* TextOrNone();  // null: None
  rankrun_bytes Bytes();     // of an object of type bytes
  std::vector<rankrun_bytes> ListOfBytes();
  std::vector<const char*> ListOfTexts();
  template <typename Number>
  std::vector<Number> ListOf();  // of integers; None is an empty list
  rankrun_tensor Tensor();
  std::vector<rankrun_tensor> Tensors();
  rankrun_reduce_op Operation();  // two arguments: kind and factor
  // The pointer of a capsule with this name; null: None, or an exception is set.
  void* Pointer(const char* name);
  rankrun_group* Group() { return static_cast<rankrun_group*>(Pointer(kGroup)); }
  rankrun_store* Store() { return static_cast<rankrun_store*>(Pointer(kStore)); }

  // Returns whether all arguments were taken, and were right.
  bool Complete();
  // Objects that an operation on the tensors needs.
  std::vector<PyObject*> owners() const { return owners_; }

  static constexpr const char* kGroup = "rankrun.group";
  static constexpr const char* kStore = "rankrun.store";

 private:
  void Refuse(const char* wanted);
  rankrun_tensor TensorOf(PyObject* tuple);
  // Calls `take` with each item of a list or tuple.
  template <typename Take>
  void ForEach(PyObject* list, Take take);

  PyObject* const* values_;
  const Py_ssize_t count_;
  Py_ssize_t next_ = 0;
  bool failed_ = false;
  std::vector<PyObject*> owners_;  // borrowed from the arguments
};

}  // namespace rankrun::python

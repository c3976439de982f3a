#include "python/native/arguments.h"

#include <utility>

namespace rankrun::python {

// Replaces the exception of the interpreter's own conversion, which does not name the argument.
void Arguments::Refuse(const char* wanted) {
  if (!failed_) PyErr_Format(PyExc_TypeError, "argument %zd: want %s", next_, wanted);
  failed_ = true;
}

PyObject* Arguments::Object() {
  if (next_ == count_) Refuse("an object");
  return failed_ ? Py_None : values_[next_++];
}

int64_t Arguments::Integer() {
  PyObject* object = Object();
  if (failed_) return 0;
  const int64_t value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) Refuse("an integer");
  return value;
}

int Arguments::Int() {
  const int64_t value = Integer();
  if (!failed_ && value != static_cast<int>(value)) Refuse("an integer of 32 bits");
  return static_cast<int>(value);
}

uint16_t Arguments::Port() {
  const int64_t value = Integer();
  if (!failed_ && value != static_cast<uint16_t>(value)) Refuse("a port, of 0 to 65535");
  return static_cast<uint16_t>(value);
}

bool Arguments::Flag() {
  const int truth = PyObject_IsTrue(Object());
  if (truth < 0) Refuse("a truth value");
  return truth == 1;
}

double Arguments::Number() {
  PyObject* object = Object();
  if (failed_) return 0;
  const double value = PyFloat_AsDouble(object);
  if (value == -1 && PyErr_Occurred() != nullptr) Refuse("a number");
  return value;
}

// Returns null for an object that is no text, or one with a NUL, which would end a text of C.
static const char* TextOf(PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  return text != nullptr && std::string_view(text).size() == static_cast<size_t>(size) ? text
                                                                                       : nullptr;
}

const char* Arguments::Text() {
  PyObject* object = Object();
  if (failed_) return "";
  const char* text = TextOf(object);
  if (text == nullptr) Refuse("a text without NUL");
  return text != nullptr ? text : "";
}

const char* Arguments::TextOrNone() {
  if (next_ < count_ && values_[next_] == Py_None) {
    ++next_;
    return nullptr;
  }
  return Text();
}

static bool ReadBytes(PyObject* object, rankrun_bytes& bytes) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(object, &data, &size) != 0) return false;
  bytes = {data, static_cast<size_t>(size)};
  return true;
}

rankrun_bytes Arguments::Bytes() {
  rankrun_bytes bytes{};
  PyObject* object = Object();
  if (!failed_ && !ReadBytes(object, bytes)) Refuse("bytes");
  return bytes;
}

template <typename Take>
void Arguments::ForEach(PyObject* list, Take take) {
  if (failed_) return;
  const bool is_tuple = PyTuple_Check(list) != 0;
  if (!is_tuple && PyList_Check(list) == 0) return Refuse("a list or tuple");
  const Py_ssize_t size = is_tuple ? PyTuple_Size(list) : PyList_Size(list);
  for (Py_ssize_t i = 0; i < size && !failed_; ++i) {
    take(is_tuple ? PyTuple_GetItem(list, i) : PyList_GetItem(list, i));
  }
}

std::vector<rankrun_bytes> Arguments::ListOfBytes() {
  std::vector<rankrun_bytes> items;
  ForEach(Object(), [&](PyObject* item) {
    if (!ReadBytes(item, items.emplace_back())) Refuse("a list of bytes");
  });
  return items;
}

std::vector<const char*> Arguments::ListOfTexts() {
  std::vector<const char*> items;
  ForEach(Object(), [&](PyObject* item) {
    items.push_back(TextOf(item));
    if (items.back() == nullptr) Refuse("a list of texts without NUL");
  });
  return items;
}

template <typename Number>
std::vector<Number> Arguments::ListOf() {
  std::vector<Number> items;
  PyObject* list = Object();
  if (list == Py_None) return items;
  ForEach(list, [&](PyObject* item) {
    const int64_t value = PyLong_AsLongLong(item);
    const bool fits = std::in_range<Number>(value);
    if (!fits || PyErr_Occurred() != nullptr) Refuse("a list of integers in their range");
    items.push_back(static_cast<Number>(value));
  });
  return items;
}
template std::vector<int32_t> Arguments::ListOf();
template std::vector<size_t> Arguments::ListOf();

rankrun_tensor Arguments::TensorOf(PyObject* tuple) {
  rankrun_tensor tensor{};
  if (PyTuple_Check(tuple) == 0 || PyTuple_Size(tuple) != 5) {
    Refuse("a tensor");
    return tensor;
  }
  tensor.data = PyLong_AsVoidPtr(PyTuple_GetItem(tuple, 0));
  tensor.count = PyLong_AsSize_t(PyTuple_GetItem(tuple, 1));
  tensor.row = PyLong_AsSize_t(PyTuple_GetItem(tuple, 2));
  const int64_t dtype = PyLong_AsLongLong(PyTuple_GetItem(tuple, 3));
  tensor.dtype = std::in_range<uint8_t>(dtype) ? static_cast<uint8_t>(dtype) : uint8_t{255};
  if (PyErr_Occurred() != nullptr) Refuse("a tensor");
  owners_.push_back(tuple);
  return tensor;
}

rankrun_tensor Arguments::Tensor() {
  PyObject* tuple = Object();
  return failed_ ? rankrun_tensor{} : TensorOf(tuple);
}

std::vector<rankrun_tensor> Arguments::Tensors() {
  std::vector<rankrun_tensor> tensors;
  ForEach(Object(), [&](PyObject* item) { tensors.push_back(TensorOf(item)); });
  return tensors;
}

rankrun_reduce_op Arguments::Operation() {
  const auto kind = static_cast<uint8_t>(Integer());
  return {.factor = Number(), .kind = kind};
}

void* Arguments::Pointer(const char* name) {
  PyObject* object = Object();
  if (failed_ || object == Py_None) return nullptr;
  void* pointer = PyCapsule_GetPointer(object, name);
  if (pointer == nullptr) Refuse(name);
  return pointer;
}

bool Arguments::Complete() {
  if (!failed_ && next_ != count_) {
    PyErr_Format(PyExc_TypeError, "takes %zd arguments, not %zd", next_, count_);
    failed_ = true;
  }
  return !failed_;
}

}  // namespace rankrun::python

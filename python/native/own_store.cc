#include "python/native/own_store.h"

#include <string>
#include <string_view>

#include "python/native/bytes.h"
#include "python/native/errors.h"

namespace rankrun::python {
namespace {

// Calls a method of the store's object, whose arguments `format` describes for Py_BuildValue, and
// `take` with the result. `take` returns false with an exception set.
template <typename Take, typename... Values>
rankrun_status CallMethod(void* context, const char* name, rankrun_store_answer* answer, Take take,
                          const char* format, Values... values) {
  const WithLock lock;
  // KeyboardInterrupt of an earlier method ends the call of the library, which may still call some.
  if (PyErr_Occurred() != nullptr) return RANKRUN_STORE;
  const Ref method(PyObject_GetAttrString(static_cast<PyObject*>(context), name));
  const Ref arguments(Py_BuildValue(format, values...));
  Ref result;
  if (method && arguments) result = Ref(PyObject_CallObject(method.get(), arguments.get()));
  if (result && take(result.get())) return RANKRUN_OK;
  const auto [status, text] = TakeError();
  rankrun_store_answer_set(answer, text.data(), text.size());
  return status;
}

bool Ignore(PyObject*) { return true; }

Ref ListOf(const char* const* keys, size_t count) {
  Ref list(PyList_New(0));
  for (size_t i = 0; list && i < count; ++i) {
    const Ref key(PyUnicode_FromString(keys[i]));
    if (!key || PyList_Append(list.get(), key.get()) != 0) return Ref();
  }
  return list;
}

// Hands the bytes of the result to the library.
auto Answer(rankrun_store_answer* answer) {
  return [answer](PyObject* result) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(result, &data, &size) != 0) return false;
    return rankrun_store_answer_set(answer, data, static_cast<size_t>(size)) == RANKRUN_OK;
  };
}

auto Integer(int64_t* number) {
  return [number](PyObject* result) {
    *number = PyLong_AsLongLong(result);
    return *number != -1 || PyErr_Occurred() == nullptr;
  };
}

auto Truth(int* truth) {
  return [truth](PyObject* result) {
    *truth = PyObject_IsTrue(result);
    return *truth >= 0;
  };
}

rankrun_status Set(void* context, const char* key, const rankrun_bytes* value,
                   rankrun_store_answer* answer) {
  const WithLock lock;
  const Ref object(ObjectOf(value));
  return CallMethod(context, "set", answer, Ignore, "(sO)", key, object.get());
}

rankrun_status Get(void* context, const char* key, int64_t timeout_ms,
                   rankrun_store_answer* answer) {
  return CallMethod(context, "get", answer, Answer(answer), "(sL)", key,
                    static_cast<long long>(timeout_ms));
}

rankrun_status Add(void* context, const char* key, int64_t delta, int64_t* sum,
                   rankrun_store_answer* answer) {
  return CallMethod(context, "add", answer, Integer(sum), "(sL)", key,
                    static_cast<long long>(delta));
}

rankrun_status Check(void* context, const char* const* keys, size_t count, int* exist,
                     rankrun_store_answer* answer) {
  const WithLock lock;
  const Ref list = ListOf(keys, count);
  return CallMethod(context, "check", answer, Truth(exist), "(O)", list.get());
}

rankrun_status Wait(void* context, const char* const* keys, size_t count, int64_t timeout_ms,
                    rankrun_store_answer* answer) {
  const WithLock lock;
  const Ref list = ListOf(keys, count);
  return CallMethod(context, "wait", answer, Ignore, "(OL)", list.get(),
                    static_cast<long long>(timeout_ms));
}

rankrun_status CompareSet(void* context, const char* key, const rankrun_bytes* expected,
                          const rankrun_bytes* desired, int* swapped,
                          rankrun_store_answer* answer) {
  auto take = [&](PyObject* result) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(result, &data, &size) != 0) return false;
    const std::string_view value(data, static_cast<size_t>(size));
    *swapped = value == std::string_view(static_cast<const char*>(desired->data), desired->size);
    return rankrun_store_answer_set(answer, value.data(), value.size()) == RANKRUN_OK;
  };
  const WithLock lock;
  const Ref old(ObjectOf(expected)), wanted(ObjectOf(desired));
  return CallMethod(context, "compare_set", answer, take, "(sOO)", key, old.get(), wanted.get());
}

rankrun_status Remove(void* context, const char* key, int* existed, rankrun_store_answer* answer) {
  return CallMethod(context, "delete", answer, Truth(existed), "(s)", key);
}

rankrun_status NumKeys(void* context, int64_t* count, rankrun_store_answer* answer) {
  return CallMethod(context, "num_keys", answer, Integer(count), "()");
}

void Destroy(void* context) {
  if (Py_IsInitialized() == 0) return;  // the process ends
  const WithLock lock;
  Py_DecRef(static_cast<PyObject*>(context));
}

}  // namespace

rankrun_status OpenOwnStore(PyObject* object, int64_t timeout_ms, rankrun_store** store) {
  rankrun_store_functions functions{.size = sizeof functions,
                                    .reserved = 0,
                                    .context = object,
                                    .set = Set,
                                    .get = Get,
                                    .add = Add,
                                    .check = Check,
                                    .wait = Wait,
                                    .compare_set = CompareSet,
                                    .remove = Remove,
                                    .num_keys = NumKeys,
                                    .destroy = Destroy};
  const WithLock lock;
  Py_IncRef(object);
  const rankrun_status status = rankrun_own_store(&functions, timeout_ms, store);
  if (status != RANKRUN_OK) Py_DecRef(object);
  return status;
}

}  // namespace rankrun::python

#include "python/native/errors.h"

#include <array>
#include <string>

namespace rankrun::python {
namespace {

// Exceptions by rankrun_status; DistError for all that have none of their own.
std::array<PyObject*, RANKRUN_INTERRUPTED + 1> of_status;

struct Description {
  const char* name;
  int base;  // status of the base class; -1: RuntimeError
  const char* text;
};

// In the order of rankrun_status, from RANKRUN_INVALID on.
constexpr std::array kDescriptions{
    Description{"DistError", -1, "Wrong use, or an error without a class of its own."},
    Description{"DistBackendError", RANKRUN_INVALID, "The backend failed; the group is broken."},
    Description{"DistTimeoutError", RANKRUN_BACKEND,
                "The time-out of a group has passed; the text names the missing ranks."},
    Description{"DistMismatchError", RANKRUN_BACKEND,
                "The calls of the ranks do not match; the text lists them."},
    Description{"DistNetworkError", RANKRUN_INVALID,
                "A rank or the store is lost; the text names it."},
    Description{"DistStoreError", RANKRUN_INVALID,
                "The store failed, or a key did not appear in time."}};

thread_local bool runs_handlers = false;

int AskInterpreter(void*) {
  if (!IsMainThread()) return 0;
  const WithLock lock;
  runs_handlers = true;
  const int raised = PyErr_CheckSignals();
  runs_handlers = false;
  return raised;
}

}  // namespace

bool AddErrors(PyObject* module) {
  int status = RANKRUN_INVALID;
  for (const Description& each : kDescriptions) {
    PyObject* base =
        each.base < 0 ? PyExc_RuntimeError : of_status.at(static_cast<size_t>(each.base));
    const std::string name = std::string("rankrun.distributed.") + each.name;
    PyObject* error = PyErr_NewExceptionWithDoc(name.c_str(), each.text, base, nullptr);
    if (error == nullptr || PyObject_SetAttrString(module, each.name, error) != 0) return false;
    of_status.at(static_cast<size_t>(status++)) = error;  // lives as long as the process
  }
  while (status <= RANKRUN_INTERRUPTED) {
    of_status.at(static_cast<size_t>(status++)) = of_status[RANKRUN_INVALID];
  }
  return true;
}

PyObject* Raise(rankrun_status status) {
  if (runs_handlers) {
    PyErr_SetString(
        of_status[RANKRUN_INVALID],
        "called in a handler of a signal while a call of rankrun waits: want the handler "
        "to set a flag, and the call after that one");
    return nullptr;
  }
  const bool is_known = status > RANKRUN_OK && status <= RANKRUN_INTERRUPTED;
  PyErr_SetString(of_status.at(is_known ? static_cast<size_t>(status) : size_t{RANKRUN_INVALID}),
                  rankrun_last_error());
  return nullptr;
}

bool SetInterruptHook() {
  return rankrun_set_interrupt_hook(AskInterpreter, nullptr) == RANKRUN_OK;
}

std::pair<rankrun_status, std::string> TakeError() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return {RANKRUN_STORE, "interrupted"};
  rankrun_status status = RANKRUN_STORE;
  if (PyErr_ExceptionMatches(of_status[RANKRUN_NETWORK]) != 0) status = RANKRUN_NETWORK;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref kind(type), error(value), stack(trace), text(PyObject_Str(value));
  const char* characters = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  std::string message = characters != nullptr ? characters : "an exception without a text";
  PyErr_Clear();
  return {status, std::move(message)};
}

}  // namespace rankrun::python

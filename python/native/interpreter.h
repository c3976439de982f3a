#pragma once

// The stable ABI of CPython 3.11: one module serves that version and all later ones. 3.9 and 3.10
// have the same functions, though they do not promise them.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <unistd.h>

#include <utility>

#include <rankrun/rankrun.h>

namespace rankrun::python {

// Owned reference to an object; null: none, and then often an exception is set.
// Thread: with the interpreter's lock.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  static Ref To(PyObject* borrowed) {
    Py_XINCREF(borrowed);
    return Ref(borrowed);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* Release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Returns whether this is the thread in which the interpreter runs handlers of signals.
inline bool IsMainThread() { return gettid() == getpid(); }

// Until CPython 3.14, a thread that takes the lock of an interpreter that is ending is unwound,
// which no destructor survives. Such a thread waits here for the end of the process instead.
inline void StayIfInterpreterEnds() {
  while (!IsMainThread() && Py_IsInitialized() == 0) pause();
}

// Lets other threads of the interpreter run in this scope.
class WithoutLock {
 public:
  WithoutLock() : state_(PyEval_SaveThread()) {}
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;
  ~WithoutLock() {
    StayIfInterpreterEnds();
    PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_;
};

// Takes the interpreter's lock in this scope, in any thread, also one that holds it.
class WithLock {
 public:
  WithLock() : state_((StayIfInterpreterEnds(), PyGILState_Ensure())) {}
  WithLock(const WithLock&) = delete;
  WithLock& operator=(const WithLock&) = delete;
  ~WithLock() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

}  // namespace rankrun::python

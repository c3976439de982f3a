#include "python/native/work.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

namespace rankrun::python {
namespace {

constexpr const char* kWork = "rankrun.work";

struct HeldWork {
  HeldWork(rankrun_work* its_work, const std::vector<PyObject*>& its_owners) : work(its_work) {
    for (PyObject* owner : its_owners) owners.push_back(Ref::To(owner));
  }
  HeldWork(const HeldWork&) = delete;
  HeldWork& operator=(const HeldWork&) = delete;
  ~HeldWork() { rankrun_work_release(work); }

  rankrun_work* work;
  std::vector<Ref> owners;
  pid_t process = getpid();
};

// Operations under way whose handle is gone. Never destroyed: some may outlive the interpreter.
auto& left_alone = *new std::vector<std::unique_ptr<HeldWork>>;

void ReleaseEnded() {
  std::vector<std::unique_ptr<HeldWork>> ended;  // the end of an owner may run any code
  for (auto& each : left_alone) {
    if (rankrun_work_test(each->work) != 0) ended.push_back(std::move(each));
  }
  std::erase(left_alone, nullptr);
}

HeldWork* HeldBy(PyObject* capsule) {
  return static_cast<HeldWork*>(PyCapsule_GetPointer(capsule, kWork));
}

void Drop(PyObject* capsule) {
  std::unique_ptr<HeldWork> held(HeldBy(capsule));
  if (held->process != getpid()) {  // a fork leaks what its parent still uses
    static_cast<void>(held.release());
    return;
  }
  if (rankrun_work_test(held->work) == 0) left_alone.push_back(std::move(held));
}

// work_wait(work): until it has ended.
PyObject* Wait(PyObject*, PyObject* work) {
  const HeldWork* held = HeldBy(work);
  if (held == nullptr) return nullptr;
  if (!Succeeds([&] { return rankrun_work_wait(held->work); })) return nullptr;
  return Ref::To(Py_None).Release();
}

// work_wait_for(work, limit_ms): returns whether it has ended.
PyObject* WaitFor(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const HeldWork* held = HeldBy(in.Object());
  const int64_t limit = in.Integer();
  int done = 0;
  if (held == nullptr || !in.Complete()) return nullptr;
  if (!Succeeds([&] { return rankrun_work_wait_for(held->work, limit, &done); })) return nullptr;
  return PyBool_FromLong(done);
}

PyObject* Test(PyObject*, PyObject* work) {
  const HeldWork* held = HeldBy(work);
  return held != nullptr ? PyBool_FromLong(rankrun_work_test(held->work)) : nullptr;
}

PyObject* Source(PyObject*, PyObject* work) {
  const HeldWork* held = HeldBy(work);
  return held != nullptr ? PyLong_FromLong(rankrun_work_source(held->work)) : nullptr;
}

PyObject* Sequence(PyObject*, PyObject* work) {
  const HeldWork* held = HeldBy(work);
  return held != nullptr ? PyLong_FromUnsignedLongLong(rankrun_work_sequence(held->work)) : nullptr;
}

// Tokens of operations that have ended, for threads of the interpreter.
class Notices {
 public:
  void Push(int64_t token) {
    const std::scoped_lock lock(mutex_);
    tokens_.push_back(token);
    changed_.notify_one();
  }
  // Returns nothing after End().
  std::optional<int64_t> Await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return has_ended_ || !tokens_.empty(); });
    if (has_ended_) return std::nullopt;
    const int64_t token = tokens_.front();
    tokens_.pop_front();
    return token;
  }
  void End() {
    const std::scoped_lock lock(mutex_);
    has_ended_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int64_t> tokens_;
  bool has_ended_ = false;
};

// Never destroyed: an operation may end after the interpreter.
Notices* notices = new Notices;

struct Notice {
  Notices* to;
  int64_t token;
};

// work_notify(work, token): next_ended() returns the token once the work has ended.
PyObject* Notify(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const HeldWork* held = HeldBy(in.Object());
  const int64_t token = in.Integer();
  if (held == nullptr || !in.Complete()) return nullptr;
  auto notice = std::make_unique<Notice>(Notice{notices, token});
  auto push = [](void* context) {
    const std::unique_ptr<Notice> of_work(static_cast<Notice*>(context));
    of_work->to->Push(of_work->token);
  };
  if (!Succeeds([&] { return rankrun_work_then(held->work, push, notice.get()); })) return nullptr;
  static_cast<void>(notice.release());
  return Ref::To(Py_None).Release();
}

// next_ended(): waits for a token; None after end_notices(). For threads that get no signals.
PyObject* NextEnded(PyObject*, PyObject*) {
  std::optional<int64_t> token;
  {
    const WithoutLock others_run;
    token = notices->Await();
  }
  return token ? PyLong_FromLongLong(*token) : Ref::To(Py_None).Release();
}

PyObject* EndNotices(PyObject*, PyObject*) {
  notices->End();
  return Ref::To(Py_None).Release();
}

// In a fork, which has none of the threads.
PyObject* ForgetNotices(PyObject*, PyObject*) {
  notices = new Notices;
  return Ref::To(Py_None).Release();
}

}  // namespace

void SweepWork() {
  if (!left_alone.empty()) ReleaseEnded();
}

PyObject* NewWork(rankrun_work* work, const std::vector<PyObject*>& owners) {
  auto held = std::make_unique<HeldWork>(work, owners);
  PyObject* capsule = PyCapsule_New(held.get(), kWork, Drop);
  if (capsule == nullptr) {
    left_alone.push_back(std::move(held));
    return nullptr;
  }
  held.release();
  return capsule;
}

PyMethodDef work_functions[] = {{"work_wait", Wait, METH_O, nullptr},
                                {"work_wait_for", Function<WaitFor>(), METH_FASTCALL, nullptr},
                                {"work_test", Test, METH_O, nullptr},
                                {"work_source", Source, METH_O, nullptr},
                                {"work_sequence", Sequence, METH_O, nullptr},
                                {"work_notify", Function<Notify>(), METH_FASTCALL, nullptr},
                                {"next_ended", NextEnded, METH_NOARGS, nullptr},
                                {"end_notices", EndNotices, METH_NOARGS, nullptr},
                                {"forget_notices", ForgetNotices, METH_NOARGS, nullptr},
                                {}};

}  // namespace rankrun::python

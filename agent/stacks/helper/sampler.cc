#include "agent/stacks/helper/sampler.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "agent/stacks/helper/code_map.h"
#include "agent/stacks/helper/proc_facts.h"
#include "agent/stacks/helper/python_frames.h"
#include "agent/stacks/helper/snapshot.h"
#include "agent/stacks/stack_text.h"

namespace rankrun::agent {
namespace {

Result<PythonLayout> LayoutOf(const CodeMap::Python& python, const RemoteMemory& memory) {
  std::string offsets(kDebugOffsetsBytes, '\0');
  if (memory.Read(python.runtime, offsets)) {
    auto layout = PythonLayoutFrom(offsets);
    if (layout || layout.error().code != ErrorCode::kNotFound) return layout;
  }
  const auto layout = PythonLayoutOf(python.minor);
  constexpr int kFirstWithOffsets = 13;
  if (layout && python.minor < kFirstWithOffsets) return *layout;
  return Error{ErrorCode::kInvalid, "CPython 3." + std::to_string(python.minor) + " is not known"};
}

// Returns the first thread that has not ended: /proc shows the memory of a process only by such
// a thread.
pid_t LivingThread(const ProcessStacks& stacks) {
  auto found = std::ranges::find_if(stacks.threads,
                                    [](const ThreadStack& thread) { return thread.state != 'Z'; });
  return found == stacks.threads.end() ? stacks.pid : found->tid;
}

// One process that is being sampled.
class Sampler {
 public:
  explicit Sampler(ProcessStacks stacks)
      : stacks_(std::move(stacks)), living_(LivingThread(stacks_)), memory_(living_) {}

  const ProcessStacks& stacks() const { return stacks_; }
  // Why Stop has failed: another process traces this one, or there is no permission.
  bool is_traced() const { return is_traced_; }
  bool is_refused() const { return is_refused_; }

  // Returns whether there are stacks.
  bool Stop() {
    auto code = CodeMap::Open(living_);
    if (!code) return Refuse(code.error().message);
    code_ = *std::move(code);
    python_ = code_->FindPython();
    snapshot_ = TakeSnapshot(living_, [this](auto is_late) { ReadPython(is_late); });
    stacks_.stopped_us = snapshot_.stopped.count();
    if (snapshot_.error == EPERM || snapshot_.error == EACCES) return RefuseOther();
    if (snapshot_.error != 0) {
      return Refuse("attaching to it failed: " + std::string(std::strerror(snapshot_.error)));
    }
    if (snapshot_.threads.empty() && snapshot_.running == 0) return Refuse("it has ended");
    if (snapshot_.threads.empty()) return Refuse("it did not stop" + Reason());
    if (snapshot_.running > 0) {
      stacks_.note = std::to_string(snapshot_.running) + " of its threads did not stop" + Reason();
    }
    return true;
  }

  void AddFunctions() {
    addresses_ = code_->Unwind(snapshot_);
    for (size_t i = 0; i < snapshot_.threads.size(); ++i) {
      ThreadStack& thread = ThreadOf(snapshot_.threads[i].tid);
      for (uint64_t address : addresses_[i]) thread.native.push_back(code_->NameOf(address));
    }
  }

  // Needs no symbols.
  void AddPythonFrames() {
    for (const ThreadSnapshot& snapshot : snapshot_.threads) {
      AddPython(ThreadOf(snapshot.tid), snapshot);
    }
  }

  void AddLines() {
    for (size_t i = 0; i < snapshot_.threads.size(); ++i) {
      ThreadStack& thread = ThreadOf(snapshot_.threads[i].tid);
      for (size_t k = 0; k < thread.native.size(); ++k) {
        // Reading the debug information of the C library would take most of the time.
        if (!IsRuntime(thread.native[k])) code_->AddLine(addresses_[i][k], thread.native[k]);
      }
    }
  }

 private:
  std::string Reason() const {
    const bool waits = std::ranges::count(stacks_.threads, 'D', &ThreadStack::state) > 0;
    return waits ? ": it waits in the kernel" : " in time";
  }

  bool Refuse(const std::string& why) {
    stacks_.note = why.empty() ? PermissionNote() : why;
    return false;
  }

  // The kernel gives the same error for a process that has a tracer.
  bool RefuseOther() {
    is_refused_ = true;
    const auto tracer = TracerOf(living_);
    is_traced_ = tracer.has_value();
    return Refuse(tracer ? TracerNote(*tracer) : "");
  }

  void ReadPython(const std::function<bool()>& is_late) {
    if (!python_) return;
    stacks_.interpreter = python_->module.substr(0, kMaxStackText);
    auto layout = LayoutOf(*python_, memory_);
    if (layout) {
      python_threads_ = PythonReader(memory_, *layout, is_late).Read(python_->runtime);
    }
    if (!layout) {
      stacks_.python_note = "not readable: " + layout.error().message;
    } else if (is_late()) {
      stacks_.python_note = "incomplete: reading them took too long";
    } else if (std::ranges::all_of(python_threads_, &std::vector<StackFrame>::empty,
                                   &PythonThread::frames)) {
      stacks_.python_note = "there are none";
    }
  }

  // Threads of a forked process may still have the numbers of the kernel from before, so the
  // address of the thread counts more.
  void AddPython(ThreadStack& thread, const ThreadSnapshot& snapshot) {
    auto found = std::ranges::find_if(python_threads_, [&](const PythonThread& python) {
      return snapshot.thread_pointer != 0 && python.id == snapshot.thread_pointer;
    });
    if (found == python_threads_.end()) {
      found = std::ranges::find(python_threads_, thread.tid, &PythonThread::native_id);
    }
    if (found != python_threads_.end()) thread.python = found->frames;
  }

  ThreadStack& ThreadOf(pid_t tid) {
    auto found = std::ranges::find(stacks_.threads, tid, &ThreadStack::tid);
    if (found != stacks_.threads.end()) return *found;
    return stacks_.threads.emplace_back(ThreadStack{.tid = tid});
  }

  ProcessStacks stacks_;
  const pid_t living_;
  const ProcessMemory memory_;
  bool is_traced_ = false;
  bool is_refused_ = false;
  std::unique_ptr<CodeMap> code_;
  std::optional<CodeMap::Python> python_;
  std::vector<PythonThread> python_threads_;
  Snapshot snapshot_;
  std::vector<std::vector<uint64_t>> addresses_;  // of the threads of the snapshot
};

// Another run of this program holds a process for some milliseconds, a debugger for long.
bool IsBrief(const OtherTracer& tracer) { return tracer.name == "rankrun-stacks"; }

// Emits stacks whose note differs from the last one.
class Emitter {
 public:
  explicit Emitter(const std::function<void(const ProcessStacks&)>& emit) : emit_(emit) {}
  void Emit(ProcessStacks stacks, const std::string& note) {
    if (std::exchange(last_, note) == note) return;
    stacks.note = note;
    emit_(stacks);
  }

 private:
  const std::function<void(const ProcessStacks&)>& emit_;
  std::string last_;
};

// Returns a process that has been stopped; null if that is impossible, and a note says why. Waits
// for other runs of this program to let the process go, until the caller ends this process.
std::unique_ptr<Sampler> Stopped(pid_t pid, Emitter emitter) {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 5'000'000};
  constexpr int kMaxRefusals = 3;  // the tracer may end before it is looked for
  for (int refusals = 0; refusals < kMaxRefusals; nanosleep(&kPause, nullptr)) {
    const ProcessStacks facts = ReadProcFacts(pid);
    const auto tracer = TracerOf(LivingThread(facts));
    if (!facts.note.empty() || tracer) {
      emitter.Emit(facts, facts.note.empty() ? TracerNote(*tracer) : facts.note);
      if (!facts.note.empty() || !IsBrief(*tracer)) return nullptr;
      continue;
    }
    const bool was_traced = std::ranges::count(facts.threads, 't', &ThreadStack::state) > 0;
    if (was_traced) continue;  // so these are not its own states
    if (refusals == 0) emitter.Emit(facts, "there was no time to read its stack");
    auto sampler = std::make_unique<Sampler>(facts);
    if (sampler->Stop()) return sampler;
    emitter.Emit(sampler->stacks(), sampler->stacks().note);
    if (!sampler->is_refused()) return nullptr;
    if (!sampler->is_traced()) ++refusals;
  }
  return nullptr;
}

}  // namespace

void SampleProcess(pid_t pid, const std::function<void(const ProcessStacks&)>& emit) {
  const auto sampler = Stopped(pid, Emitter(emit));
  if (!sampler) return;
  sampler->AddPythonFrames();
  ProcessStacks early = sampler->stacks();
  early.note = "there was no time to read its native functions";
  emit(early);
  sampler->AddFunctions();
  emit(sampler->stacks());
  sampler->AddLines();
  emit(sampler->stacks());
}

}  // namespace rankrun::agent

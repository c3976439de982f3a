#pragma once

#include <any>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rankrun/export.h>
#include <rankrun/process_group.h>
#include <rankrun/tensor.h>
#include <rankrun/work.h>

// Training with different numbers of inputs on the ranks: a rank without inputs takes part
// in the collectives of the others until all have none.
// Source: torch.distributed.algorithms.Join.
namespace rankrun {

// For the hooks of all joinables, by name: {{"divide_by_initial_world_size", true}}.
using JoinArguments = std::map<std::string, std::any>;

// Actions of one joinable on a rank that has no more inputs.
class RANKRUN_API JoinHook {
 public:
  virtual ~JoinHook();

  // Called in each step that other ranks still make: makes the collectives of the step, in
  // the same order, with data that changes no result.
  virtual void MainHook() {}
  // Called once, when no rank has inputs. `is_last_joiner`: no rank had more inputs.
  virtual void PostHook(bool is_last_joiner) { static_cast<void>(is_last_joiner); }
};

class Join;

// Object whose steps make collectives, such as a model or an optimizer. It calls
// NotifyJoinContext(*this) before those of each step.
class RANKRUN_API Joinable {
 public:
  virtual ~Joinable();

  virtual std::unique_ptr<JoinHook> MakeJoinHook(const JoinArguments& arguments) = 0;
  virtual ProcessGroup& join_process_group() const = 0;

 protected:
  Joinable() = default;
  Joinable(const Joinable&) {}  // a copy is in no Join
  Joinable& operator=(const Joinable&) { return *this; }

  // Returns whether it is in an enabled Join, before its Finish.
  bool is_in_join() const { return join_ != nullptr; }

 private:
  friend class Join;
  friend RANKRUN_API std::optional<Work> NotifyJoinContext(Joinable& joinable);

  Join* join_ = nullptr;  // that has it, and is enabled
};

struct JoinOptions {
  bool enable = true;  // false: all ranks have the same number of inputs, so do nothing
  // Ends all ranks with an error as soon as one has no more inputs.
  bool throw_on_early_termination = false;
  JoinArguments arguments = {};
};

// Scope in which ranks may have different numbers of inputs:
//
//   Join join({&model, &optimizer});
//   for (const Batch& batch : own_batches) model.Step(batch);
//   join.Finish();
//
// Thread: one. Lifetime: the joinables outlive it or its Finish, and none is in two at a time.
class RANKRUN_API Join {
 public:
  // Throws DistError without a joinable, and for joinables with different groups, which
  // is a fault of the program on all ranks. An exception of MakeJoinHook breaks the group.
  explicit Join(std::vector<Joinable*> joinables, const JoinOptions& options = {});
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;
  // Without Finish, as after an exception, the group breaks on all ranks, because the
  // others would wait for this one. This may take as long as a reply of the store.
  ~Join();

  // Takes part in the steps of the other ranks until no rank has inputs. Warns once after
  // 1000 steps. Throws DistError with throw_on_early_termination if another rank still has
  // inputs; the errors of the group's collectives and of the hooks.
  void Finish();

 private:
  friend RANKRUN_API std::optional<Work> NotifyJoinContext(Joinable& joinable);

  void Leave();
  void EndGroup() noexcept;
  float Sum(float mine);
  std::optional<Work> Notify();
  bool TakeSteps();

  const std::vector<Joinable*> joinables_;
  const JoinOptions options_;
  std::vector<std::unique_ptr<JoinHook>> hooks_;
  ProcessGroup& group_;
  bool has_left_ = false;
  bool finished_ = false;
};

// Announces to the other ranks that this one makes another step. Returns the Work of
// that, which needs no Wait; nothing unless `joinable` is the first of an enabled Join.
// Throws DistError with throw_on_early_termination if another rank has no more inputs; the
// errors of an all-reduce.
RANKRUN_API std::optional<Work> NotifyJoinContext(Joinable& joinable);

}  // namespace rankrun

#include <algorithm>
#include <utility>

#include <rankrun/dist_error.h>
#include <rankrun/join.h>

#include "base/log.h"
#include "comm/core/part_of.h"
#include "comm/core/throw.h"
#include "comm/group/group.h"
#include "comm/group/process_group_access.h"

namespace rankrun {
namespace {

// Steps of other ranks after which a rank warns that it has far fewer inputs.
constexpr int kMaxSkew = 1000;

[[noreturn]] void ThrowInvalid(const std::string& message) {
  comm::Throw({ErrorCode::kInvalid, "Join: " + message});
}

ProcessGroup& GroupOfAll(const std::vector<Joinable*>& joinables) {
  if (joinables.empty()) ThrowInvalid("there is no joinable: want at least one");
  bool has_null = std::find(joinables.begin(), joinables.end(), nullptr) != joinables.end();
  if (has_null) ThrowInvalid("a joinable is null");
  ProcessGroup& group = joinables.front()->join_process_group();
  for (const Joinable* joinable : joinables) {
    const ProcessGroup& other = joinable->join_process_group();
    if (&other == &group) continue;
    ThrowInvalid("the joinables have different process groups, \"" + group.name() + "\" and \"" +
                 other.name() + "\": want the same one");
  }
  return group;
}

}  // namespace

JoinHook::~JoinHook() = default;
Joinable::~Joinable() = default;

Join::Join(std::vector<Joinable*> joinables, const JoinOptions& options)
    : joinables_(std::move(joinables)), options_(options), group_(GroupOfAll(joinables_)) {
  for (const Joinable* joinable : joinables_) {
    if (joinable->join_ == nullptr) continue;
    bool is_first = joinable == joinables_.front();
    ThrowInvalid((is_first ? "the first joinable" : std::string("a joinable")) +
                 " is in another Join already");
  }
  try {
    for (Joinable* joinable : joinables_) {
      hooks_.push_back(joinable->MakeJoinHook(options_.arguments));
      if (hooks_.back() == nullptr) ThrowInvalid("a joinable has made no hook");
    }
  } catch (...) {
    EndGroup();
    throw;
  }
  if (!options_.enable) return;
  for (Joinable* joinable : joinables_) joinable->join_ = this;
}

Join::~Join() {
  Leave();
  if (!finished_) EndGroup();
}

// Ends the waits of the other ranks for this one.
void Join::EndGroup() noexcept {
  if (!options_.enable) return;
  try {
    comm::Group& group = comm::GroupOf(group_);
    if (!group.is_member() || group.state() == GroupState::kBroken) return;
    group.End("ended the group: the end of a Join before Finish");
  } catch (const DistError&) {
    // The group is destroyed: no rank waits in it.
  }
}

// In CPU memory, whatever the device: the group has a backend for it.
float Join::Sum(float mine) {
  const comm::PartOf part_of(ProgramCall::kJoin);
  group_.AllReduce(Tensor(&mine, DType::kFloat32, 1));
  return mine;
}

std::optional<Work> Join::Notify() {
  auto active = std::make_shared<float>(1);
  const comm::PartOf part_of(ProgramCall::kJoin);
  Work work = group_.AllReduce(Tensor(active.get(), DType::kFloat32, 1), ReduceOp::kSum, kAsync);
  work.Then([active] {});  // keeps the memory
  if (options_.throw_on_early_termination && Sum(0) != 0) {
    finished_ = true;
    comm::Throw({ErrorCode::kInvalid, "Join: at least one rank has no more inputs"});
  }
  return work;
}

void Join::Finish() {
  if (finished_) return;
  Leave();
  if (options_.enable && group_.is_member()) {
    bool is_last_joiner = TakeSteps();
    for (const auto& hook : hooks_) hook->PostHook(is_last_joiner);
  }
  finished_ = true;
}

void Join::Leave() {
  if (std::exchange(has_left_, true)) return;  // the joinables may be gone
  for (Joinable* joinable : joinables_) {
    if (joinable->join_ == this) joinable->join_ = nullptr;
  }
}

// Makes the collectives of the other ranks' steps. Returns whether there was none.
bool Join::TakeSteps() {
  for (int steps = 0;; ++steps) {
    if (steps == kMaxSkew + 1) {
      LogWarn("Join: global rank " + std::to_string(group_.global_rank()) + " has at least " +
              std::to_string(kMaxSkew) +
              " inputs fewer than other ranks, and slows them down: want inputs of similar "
              "numbers on all ranks");
    }
    if (Sum(0) == 0) return steps == 0;
    if (options_.throw_on_early_termination) {
      Sum(1);
      finished_ = true;
      ThrowInvalid("global rank " + std::to_string(group_.global_rank()) +
                   " has no more inputs, and others have");
    }
    for (const auto& hook : hooks_) hook->MainHook();
  }
}

std::optional<Work> NotifyJoinContext(Joinable& joinable) {
  Join* join = joinable.join_;
  if (join == nullptr || join->joinables_.front() != &joinable) return std::nullopt;
  return join->Notify();
}

}  // namespace rankrun

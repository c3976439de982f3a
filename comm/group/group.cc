#include "comm/group/group.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/interruptible_call.h"
#include "base/log.h"
#include "base/status/status_page.h"
#include "comm/core/time_left.h"
#include "comm/group/explanation.h"
#include "comm/group/group_log.h"
#include "comm/group/post_mortem.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

void EndBackends(Backend& backend, Devices* devices, const std::string& reason) {
  backend.Abort(reason);
  if (devices != nullptr) devices->Abort();
}

}  // namespace

Group::Group(GroupIdentity identity, std::unique_ptr<store::Store> store,
             std::unique_ptr<StoreBarrier> barrier, std::unique_ptr<Backend> backend,
             std::unique_ptr<DeviceBackend> devices)
    : identity_(std::move(identity)),
      store_(std::move(store)),
      barrier_(std::move(barrier)),
      backend_(std::move(backend)),
      activity_(StatusPage::OfThisProcess(), DisplayName(identity_), identity_.world_size()),
      messages_(std::make_unique<Messages>(
          *backend_, identity_.group_rank,
          [this](int rank) { return identity_.global_ranks[static_cast<size_t>(rank)]; },
          identity_.deaths,
          [this](const Messages::Message& message, Error error) {
            return MessageFailed(message, std::move(error));
          })),
      events_(DisplayName(identity_), identity_.key_prefix, identity_.world_size(),
              identity_.global_rank, &activity_.recorder()),
      progress_thread_([this] { return messages_->Progress(); }) {
  if (devices != nullptr) {
    devices_ = std::make_unique<Devices>(std::move(devices), HooksOfDevices());
  }
}

Group::Group(GroupIdentity identity)
    : identity_(std::move(identity)),
      activity_(nullptr, DisplayName(identity_), 0),
      events_(DisplayName(identity_), identity_.key_prefix, identity_.world_size(),
              identity_.global_rank),
      progress_thread_([] { return false; }) {}

Group::~Group() {
  FinishQueued();
  progress_thread_.Stop();
  waiters_->Detach();
  if (is_member()) LogDestroyed(identity_, operations_);
}

void Group::FinishQueued() {
  const Waiters::Scope waiting(waiters_.get());
  // Blocking calls of other threads have failed, too, and return in a moment. They may still
  // be about to queue something.
  if (broken_.is_ending()) calls_.AwaitNone();
  // If the program interrupts Destroy, it ends the calls under way.
  while (InterruptibleCall::IsUnderWay() && queue_->busy()) {
    if (InterruptibleCall::IsInterrupted()) EndCalls("was interrupted by the program");
    std::this_thread::sleep_for(milliseconds(1));
  }
  // First, because their ends may start collectives, which the queue compares.
  if (devices_ != nullptr) {
    devices_->calls().AwaitIdle();
    devices_->messages().Stop();
  }
  queue_->Stop();
  if (devices_ != nullptr) devices_->calls().Stop();
  if (broken_.is_ending()) calls_.AwaitNone();  // an Abort may have begun meanwhile
}

Error Group::Decline(const Operation& operation, Error reason) {
  const CallCount::Scope in_call(calls_);
  return Refuse(operation, std::move(reason), {}).error();
}

void Group::SetRoot(Operation& operation, int group_rank) const {
  operation.root = group_rank;
  operation.global_root = identity_.global_ranks[static_cast<size_t>(group_rank)];
}

GroupState Group::state() const { return broken_.is_set() ? GroupState::kBroken : GroupState::kOk; }

std::string Group::broken_reason() const { return broken_.reason(); }

Result<void> Group::MonitoredBarrier(Timeout timeout, bool wait_all_ranks) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return Uninvolved("MonitoredBarrier");
  MutexLock lock(mutex_);
  Result<milliseconds> limit = Effective(timeout);
  if (!limit) return Error(limit.error()).In("MonitoredBarrier");
  std::string what = "MonitoredBarrier #" + std::to_string(monitored_barriers_ + 1) + Place();
  if (broken_.is_set()) return Broken(what);
  monitored_barriers_ += 1;
  OperationEvent event = events_.BeginMonitoredBarrier(monitored_barriers_);
  auto ok = barrier_->Pass(*limit, wait_all_ranks);
  event.End(static_cast<bool>(ok));
  if (!ok) return std::move(ok).error().In(what);
  return {};
}

std::optional<Error> Group::FindFailure(const char* what, TimePoint since) {
  const CallCount::Scope in_call(calls_);
  if (broken_.is_set()) {
    // The backend sees no deaths any more, but the agent does.
    if (identity_.deaths.has_agent()) return std::nullopt;
    return Broken(what);
  }
  auto failure = backend_->FindFailure(since);
  if (!failure) return std::nullopt;
  Error error = Break(what, *std::move(failure), identity_.timeout);
  messages_->EndOwn();
  return error;
}

Result<void> Group::Uninvolved(const char* what) const {
  std::string message = std::string(what) + Place() + ": does nothing here, as rank " +
                        std::to_string(identity_.global_rank) + " is no member of it";
  if (identity_.is_strict) return Error{ErrorCode::kInvalid, message};
  LogWarn(message);
  return {};
}

Result<milliseconds> Group::Effective(Timeout timeout) const {
  return EffectiveTimeout(timeout, identity_.timeout);
}

Error Group::Broken(const std::string& what) const {
  return Error{ErrorCode::kSystem,
               what + ": the process group is broken: " + WithDeath(broken_reason())};
}

// Adds a death that was reported after the failure that it caused.
std::string Group::WithDeath(std::string text) const {
  std::string death = identity_.deaths.Message();
  if (text.find(death) == std::string::npos) text += "; " + death;
  return text;
}

Error Group::Failed(const Operation& operation, Error error, const CallTimes& times) {
  std::string what = Describe(operation);
  if (error.code != ErrorCode::kInvalid) {
    error = Break(what, std::move(error), times);
    messages_->EndOwn();
  }
  return std::move(error).In(what + Place());
}

// Breaks the group. Publishes the cause before it closes the connections,
// because the other ranks read it as soon as they lose theirs. Other failing
// threads wait here, because their callers may free memory that the backend
// still uses.
Error Group::Break(const std::string& operation, Error cause, const CallTimes& times) {
  MutexLock one_at_a_time(break_mutex_);
  bool may_explain = !broken_.is_set() && !broken_.is_ending();
  if (may_explain && !identity_.deaths.has_death()) {
    std::optional<WallTime> came;
    if (times.came) came = origin_.WallTimeOf(*times.came);
    Explain(identity_, *store_, {.operation = operation, .timeout = times.timeout, .came = came},
            broken_.is_ending(), cause);
  }
  std::string reason = operation + ": " + WithDeath(cause.message);
  bool is_first = broken_.Set(reason, [&] {
    EndBackends(*backend_, devices_.get(), RanksInWords({identity_.global_rank}) + ": " + reason);
  });
  if (is_first) {
    cause.message = WithDeath(std::move(cause.message));
    return cause;
  }
  // Meanwhile, by a message or a collective, or by End.
  std::string first = broken_reason();
  if (cause.message == first) cause.code = ErrorCode::kSystem;  // on each backend
  if (AddsInformation(first, operation, cause)) {
    cause.message += "; first to fail here was " + first;
  }
  return cause;
}

void Group::EndCalls(const std::string& how) {
  const std::string reason = RanksInWords({identity_.global_rank}) + " " + how;
  broken_.NoteEnd();
  broken_.Set(reason, [&] { EndBackends(*backend_, devices_.get(), reason); });
  messages_->EndOwn();
}

// Not analysed: a thread of this rank that waits in the barrier has the mutex.
bool Group::End(const std::string& how) NO_THREAD_SAFETY_ANALYSIS {
  EndCalls(how);
  auto store = store_->CloneWith(kStorePatience, kStorePatience);
  if (!store) return false;
  const std::string rank = RanksInWords({identity_.global_rank});
  barrier_->End(**store, {ErrorCode::kSystem, rank + " " + how});
  // For ranks that get no more than the loss of a connection.
  PostMortem post_mortem(**store, identity_.key_prefix, identity_.group_rank,
                         identity_.global_ranks);
  static_cast<void>(post_mortem.FirstFailure(how, milliseconds(0)));
  return true;
}

std::string DisplayName(const GroupIdentity& identity) {
  const std::string& own = identity.description.empty() ? identity.name : identity.description;
  return identity.context.empty() ? own : identity.context + "/" + own;
}

std::string PlaceIn(const GroupIdentity& identity) {
  std::string name = "process group \"" + DisplayName(identity) + "\"";
  if (identity.is_world()) {
    name = identity.context.empty() ? "the world process group"
                                    : "the world of context \"" + identity.context + "\"";
  }
  if (identity.group_rank < 0) return name;
  const std::string place =
      std::to_string(identity.group_rank) + " of " + std::to_string(identity.world_size());
  if (identity.is_world()) return name + ", rank " + place;
  return name + ", global rank " + std::to_string(identity.global_rank) + " (" + place + ")";
}

}  // namespace rankrun::comm

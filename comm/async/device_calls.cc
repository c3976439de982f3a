#include "comm/async/device_calls.h"

#include <algorithm>
#include <thread>

#include "base/status/status_page.h"

namespace rankrun::comm {
namespace {

// Time in which the backend for CPU memory notices the death of a rank.
constexpr std::chrono::milliseconds kNoticing{500};

// Returns whether the comparison of the call fails, too, and names the missing rank.
bool IsExplainedByComparison(const Error& error) {
  return error.code == ErrorCode::kCancelled || error.code == ErrorCode::kTimeout;
}

}  // namespace

DeviceCalls::DeviceCalls(DeviceBackend& backend, const DeviceHooks& hooks)
    : backend_(backend),
      hooks_(hooks),
      activity_(StatusPage::OfThisProcess(), hooks.name, hooks.world_size),
      pause_(kMinDevicePause),
      failures_(hooks),
      thread_([this] { return Progress(); }) {}

Result<std::shared_ptr<WorkState>> DeviceCalls::Run(const DeviceCall& call,
                                                    const std::shared_ptr<WorkState>& compared) {
  Handle handle(new InFlight{.call = call, .since = MonotonicClock().Now(), .compared = compared});
  {
    MutexLock lock(mutex_);
    in_flight_.push_back(handle);
  }
  if (auto ok = thread_.Wake(); !ok) {
    {
      MutexLock lock(mutex_);
      std::erase(in_flight_, handle);
      emptied_.NotifyAll();
    }
    return hooks_.failed(call.operation, ok.error(), call.timeout);
  }
  return Enqueue(handle);
}

// A call that fails ends by Progress, because its comparison may need the thread of the
// caller, which must not wait for it.
std::shared_ptr<WorkState> DeviceCalls::Enqueue(const Handle& handle) {
  auto work = backend_.Enqueue(handle->call);
  if (work) {
    auto state = WorkState::OfAll({handle->compared, handle->state});
    state->SetDeviceWork(*work);
    MutexLock lock(mutex_);
    handle->work = *std::move(work);
    return state;
  }
  Error error = std::move(work).error();
  // The other ranks have begun the call.
  if (error.code == ErrorCode::kInvalid) error.code = ErrorCode::kSystem;
  bool is_explained = IsExplainedByComparison(error);
  MutexLock lock(mutex_);
  handle->not_enqueued = std::move(error);
  return is_explained ? WorkState::OfAll({handle->compared, handle->state}) : handle->state;
}

void DeviceCalls::AwaitIdle() {
  MutexLock lock(mutex_);
  while (!in_flight_.empty()) emptied_.Wait(mutex_);
}

void DeviceCalls::Stop() {
  AwaitIdle();
  thread_.Stop();
}

// Advances the first call. Returns whether there are calls.
bool DeviceCalls::Progress() {
  Handle first;
  {
    MutexLock lock(mutex_);
    if (!in_flight_.empty()) first = in_flight_.front();
  }
  if (first == nullptr) {
    ShowOnPage(nullptr);
    return false;
  }
  std::optional<Result<void>> end = EndOf(*first);
  if (!end) {
    ShowOnPage(first);
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(2 * pause_, kMaxDevicePause);
    return true;
  }
  pause_ = kMinDevicePause;
  ShowOnPage(nullptr);
  if (*end) {
    hooks_.completed(first->call.operation, first->since);
  } else {
    *end = hooks_.failed(first->call.operation, end->error(), first->call.timeout);
  }
  first->state->Finish(*std::move(end));
  MutexLock lock(mutex_);
  in_flight_.pop_front();
  if (in_flight_.empty()) emptied_.NotifyAll();
  return !in_flight_.empty();
}

// Shows on the status page that the call is under way; null: none is.
void DeviceCalls::ShowOnPage(const Handle& first) {
  if (std::exchange(shown_, first) == first) return;
  if (first == nullptr) return activity_.Complete();
  const Operation& operation = first->call.operation;
  activity_.Enter(RecordOf(operation, Fingerprint(operation)), Activity::Recording::kNo);
}

// Returns no value if the call is under way. Until it is enqueued, it can only fail.
std::optional<Result<void>> DeviceCalls::EndOf(InFlight& one) {
  std::shared_ptr<DeviceWork> work;
  std::optional<Error> not_enqueued;
  {
    MutexLock lock(mutex_);
    work = one.work;
    not_enqueued = one.not_enqueued;
  }
  const TimePoint now = MonotonicClock().Now();
  if (not_enqueued && IsExplainedByComparison(*not_enqueued)) {
    if (!one.compared->done()) return std::nullopt;
    return *std::move(not_enqueued);
  }
  if (not_enqueued && !one.failure) one.failure = {*std::move(not_enqueued), now};
  if (work != nullptr && !one.failure) {
    auto done = work->Test();
    if (done && *done) return Result<void>();
    if (!done) one.failure = {std::move(done).error(), now};
  }
  if (one.failure) return CauseOf(one, now);
  if (hooks_.deaths.has_death()) return hooks_.deaths.ErrorSince(one.since);
  // Until then the comparison notices what other ranks do, and ends by its time-out.
  if (!one.compared->done()) return std::nullopt;
  if (auto failure = failures_.Find(one.since)) return *std::move(failure);
  bool is_late = now >= one.since + one.call.timeout;
  if (!is_late || work == nullptr) return std::nullopt;
  return Error{ErrorCode::kTimeout,
               "all ranks have made the call, but the device has not completed it"};
}

// NCCL may notice the death of a rank before the others do, and does not say which.
std::optional<Result<void>> DeviceCalls::CauseOf(InFlight& one, TimePoint now) {
  const auto& [error, since] = *one.failure;
  if (error.code == ErrorCode::kCancelled) return error;  // by this group itself
  if (hooks_.deaths.has_death()) return hooks_.deaths.ErrorSince(one.since);
  if (one.compared->done()) {
    if (auto failure = failures_.Find(one.since)) return *std::move(failure);
  }
  if (now < since + kNoticing) return std::nullopt;
  return error;
}

}  // namespace rankrun::comm

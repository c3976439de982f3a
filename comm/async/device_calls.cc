#include "comm/async/device_calls.h"

#include <algorithm>
#include <thread>

#include "base/status/status_page.h"

namespace rankrun::comm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Pauses between two looks at a device: short enough for a small collective, and
// without load while a long one runs.
constexpr Duration kMinNap = microseconds(20);
constexpr Duration kMaxNap = microseconds(500);

// Time between two looks for failures of other ranks, which make system calls.
constexpr milliseconds kLookInterval{5};

}  // namespace

DeviceCalls::DeviceCalls(std::unique_ptr<DeviceBackend> backend, const Place& place, Look look,
                         Failed failed)
    : backend_(std::move(backend)),
      deaths_(place.deaths),
      look_(std::move(look)),
      failed_(std::move(failed)),
      activity_(StatusPage::OfThisProcess(), place.name, place.world_size),
      nap_(kMinNap),
      thread_([this] { return Progress(); }) {}

Result<std::shared_ptr<WorkState>> DeviceCalls::Run(const DeviceCall& call,
                                                    const std::shared_ptr<WorkState>& compared) {
  Handle handle(new InFlight{.call = call, .since = MonotonicClock().Now(), .compared = compared});
  if (auto ok = Start(handle); !ok) return EnqueueFailed(handle, std::move(ok).error());
  return Enqueue(handle);
}

// Error: kExhausted, the system has no thread left.
Result<void> DeviceCalls::Start(const Handle& handle) {
  {
    MutexLock lock(mutex_);
    in_flight_.push_back(handle);
  }
  return thread_.Wake();
}

Result<std::shared_ptr<WorkState>> DeviceCalls::Enqueue(const Handle& handle) {
  auto work = backend_->Enqueue(handle->call);
  if (!work) return EnqueueFailed(handle, std::move(work).error());
  auto state = WorkState::OfAll({handle->compared, handle->state});
  state->SetDeviceWork(*work);
  MutexLock lock(mutex_);
  handle->work = *std::move(work);
  return state;
}

// Returns the full error of a call that is not on the device. If the group broke
// meanwhile, that is the cause: by the comparison, or by a failure that Progress found.
Error DeviceCalls::EnqueueFailed(const Handle& handle, Error error) {
  auto ended = Withdraw(handle);
  // A comparison that fails names the rank that is missing.
  if (ended || error.code == ErrorCode::kCancelled || error.code == ErrorCode::kTimeout) {
    handle->compared->Await();
    if (!handle->compared->result()) return handle->compared->result().error();
  }
  if (ended) return *std::move(ended);
  // The other ranks have begun the call.
  if (error.code == ErrorCode::kInvalid) error.code = ErrorCode::kSystem;
  return failed_(handle->call.operation, std::move(error), handle->call.timeout);
}

// Forgets a call. Returns the error with which Progress has ended it, if it has.
std::optional<Error> DeviceCalls::Withdraw(const Handle& handle) {
  MutexLock lock(mutex_);
  if (!handle->is_ending) {
    std::erase(in_flight_, handle);
    if (in_flight_.empty()) emptied_.NotifyAll();
    return std::nullopt;
  }
  lock.Unlock();
  handle->state->Await();
  return handle->state->result().error();
}

void DeviceCalls::Stop() {
  {
    MutexLock lock(mutex_);
    while (!in_flight_.empty()) emptied_.Wait(mutex_);
  }
  thread_.Stop();
}

// Advances the first call. Returns whether there are calls.
bool DeviceCalls::Progress() {
  Handle first;
  std::shared_ptr<DeviceWork> work;
  {
    MutexLock lock(mutex_);
    if (!in_flight_.empty()) {
      first = in_flight_.front();
      work = first->work;
    }
  }
  if (first == nullptr) {
    Show(nullptr);
    return false;
  }
  std::optional<Result<void>> end = EndOf(*first, work.get());
  if (!end) {
    Show(first);
    std::this_thread::sleep_for(nap_);
    nap_ = std::min(2 * nap_, kMaxNap);
    return true;
  }
  {
    MutexLock lock(mutex_);
    bool is_withdrawn = in_flight_.empty() || in_flight_.front() != first;
    if (is_withdrawn) return true;
    first->is_ending = true;
  }
  nap_ = kMinNap;
  Show(nullptr);
  if (!*end) *end = failed_(first->call.operation, end->error(), first->call.timeout);
  first->state->Finish(*std::move(end));
  MutexLock lock(mutex_);
  in_flight_.pop_front();
  if (in_flight_.empty()) emptied_.NotifyAll();
  return !in_flight_.empty();
}

// Shows on the status page that the call is under way; null: none is.
void DeviceCalls::Show(const Handle& first) {
  if (std::exchange(shown_, first) == first) return;
  if (first == nullptr) return activity_.Complete();
  const Operation& operation = first->call.operation;
  activity_.Enter(RecordOf(operation, Fingerprint(operation)));
}

// Returns no value if the call is under way. `work` is null until it is enqueued; then
// it can only fail.
std::optional<Result<void>> DeviceCalls::EndOf(const InFlight& one, DeviceWork* work) {
  if (work != nullptr) {
    auto done = work->Test();
    if (!done) return std::move(done).error();
    if (*done) return Result<void>();
  }
  if (deaths_.has_death()) return deaths_.ErrorSince(one.since);
  // Until then the comparison notices what other ranks do, and ends by its time-out.
  if (!one.compared->done()) return std::nullopt;
  TimePoint now = MonotonicClock().Now();
  if (now >= std::max(next_look_, one.since + kLookInterval)) {
    next_look_ = now + kLookInterval;
    if (auto failure = look_(one.since)) return *std::move(failure);
  }
  bool is_late = now >= one.since + one.call.timeout;
  if (!is_late || work == nullptr) return std::nullopt;
  return Error{ErrorCode::kTimeout,
               "all ranks have made the call, but the device has not completed it"};
}

}  // namespace rankrun::comm

#include "comm/nccl/communicator.h"

#include <algorithm>
#include <utility>

#include "base/process/start_thread.h"
#include "comm/nccl/nvidia.h"

namespace rankrun::comm::nccl {
namespace {

using std::chrono::milliseconds;

// Time for the ranks to leave a communicator together; a rank that is late may have
// died.
constexpr milliseconds kLeaving{5000};

// Pauses between two looks at a communicator that works in the background.
constexpr Duration kMinPause = std::chrono::microseconds(20);
constexpr Duration kMaxPause = milliseconds(1);

// NCCL's own maximum; it caps greater ones.
constexpr int kNcclMaxCtas = 64;

Error Aborted() { return {ErrorCode::kCancelled, "NCCL's communicator was aborted"}; }

Error Failed(const char* what, ncclResult_t status) {
  std::string text = std::string(what) + ": " + Nvidia().ncclGetErrorString(status);
  const char* last = Nvidia().ncclGetLastError(nullptr);
  if (last != nullptr && *last != '\0') text += std::string(" (") + last + ")";
  return {ErrorCode::kSystem, text};
}

// Valid as long as the name.
ncclConfig_t ConfigFor(const Communicator::Place& place) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (place.options.min_ctas > 0) config.minCTAs = place.options.min_ctas;
  if (place.options.max_ctas > 0) config.maxCTAs = place.options.max_ctas;
  // NCCL takes an absent maximum for less than any minimum.
  const bool needs_maximum = place.options.min_ctas > 0 && place.options.max_ctas <= 0;
  if (needs_maximum) config.maxCTAs = std::max(place.options.min_ctas, kNcclMaxCtas);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  config.commName = place.name;
#endif
  return config;
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::Begin(const ncclUniqueId& id,
                                                          const Place& place) {
  ncclConfig_t config = ConfigFor(place);
  ncclComm_t comm = nullptr;
  ncclResult_t status = Nvidia().ncclCommInitRankConfig(&comm, place.size, id, place.rank, &config);
  std::unique_ptr<Communicator> made;
  if (comm != nullptr) made.reset(new Communicator(comm, place.deaths, place.aborted));
  if (GoesOn(status)) return made;
  if (made != nullptr) made->Abort();
  return Failed("ncclCommInitRankConfig", status);
}

Result<std::unique_ptr<Communicator>> Communicator::Connect(const ncclUniqueId& id,
                                                            const Place& place,
                                                            TimePoint deadline) {
  auto made = Begin(id, place);
  if (!made) return made;
  if (auto ok = (*made)->Settle((*made)->State(), "ncclCommInitRankConfig", deadline); !ok) {
    (*made)->Abort();
    return std::move(ok).error();
  }
  return made;
}

Communicator::~Communicator() {
  Leave();
  ncclResult_t status = ncclInternalError;
  TimePoint deadline;
  {
    MutexLock lock(mutex_);
    if (is_over_) return;
    status = *leaving_;
    deadline = leaving_until_;
  }
  if (!Settle(status, "ncclCommFinalize", deadline)) {
    Abort();
    return;
  }
  MutexLock lock(mutex_);
  static_cast<void>(Nvidia().ncclCommDestroy(comm_));
}

void Communicator::Leave() {
  MutexLock lock(mutex_);
  if (is_over_ || leaving_) return;
  leaving_ = Nvidia().ncclCommFinalize(comm_);
  leaving_until_ = MonotonicClock().Now() + kLeaving;
}

Result<bool> Communicator::Poll() {
  if (aborted_.load()) return Aborted();
  ncclResult_t status = State();
  if (!GoesOn(status)) return Failed("NCCL", status);
  return status == ncclSuccess;
}

Result<bool> Communicator::Enqueue(const std::function<ncclResult_t(ncclComm_t)>& calls) {
  MutexLock lock(mutex_);
  if (is_over_) return Aborted();
  ncclResult_t status = Nvidia().ncclGroupStart();
  if (status != ncclSuccess) return Failed("ncclGroupStart", status);
  ncclResult_t called = calls(comm_);
  status = Nvidia().ncclGroupEnd();
  if (!GoesOn(called)) status = called;
  if (!GoesOn(status)) return Failed("NCCL", status);
  return status == ncclSuccess;
}

Result<void> Communicator::Launch(const std::function<ncclResult_t(ncclComm_t)>& calls,
                                  TimePoint deadline) {
  MutexLock busy(busy_mutex_);
  auto enqueued = Enqueue(calls);
  if (!enqueued) return enqueued.error();
  return Settle(*enqueued ? ncclSuccess : ncclInProgress, "NCCL", deadline);
}

Result<void> Communicator::WithPremulSum(void* scalar, ncclDataType_t type,
                                         const std::function<Result<void>(ncclRedOp_t)>& launch) {
  ncclRedOp_t op = ncclSum;
  {
    MutexLock lock(mutex_);
    if (is_over_) return Aborted();
    ncclResult_t status =
        Nvidia().ncclRedOpCreatePreMulSum(&op, scalar, type, ncclScalarHostImmediate, comm_);
    if (status != ncclSuccess) return Failed("ncclRedOpCreatePreMulSum", status);
  }
  auto launched = launch(op);
  if (!launched) return launched;  // NCCL may still work on the call
  MutexLock lock(mutex_);
  if (!is_over_) static_cast<void>(Nvidia().ncclRedOpDestroy(op, comm_));
  return launched;
}

Result<std::unique_ptr<Communicator>> Communicator::Split(const DevicePart& part,
                                                          const Place& place, TimePoint deadline) {
  constexpr char kWhat[] = "ncclCommSplit";
  static_assert(DevicePart::kNoColor == NCCL_SPLIT_NOCOLOR);
  ncclConfig_t config = ConfigFor(place);
  MutexLock busy(busy_mutex_);
  // NCCL sets it in the background. Lost after an error, because NCCL may still set it.
  auto* comm = new std::atomic<ncclComm_t>(nullptr);
  static_assert(sizeof *comm == sizeof(ncclComm_t));
  ncclResult_t status = ncclSuccess;
  {
    MutexLock lock(mutex_);
    if (is_over_) return Aborted();
    status = Nvidia().ncclCommSplit(comm_, part.color, part.rank,
                                    reinterpret_cast<ncclComm_t*>(comm), &config);
  }
  if (!GoesOn(status)) delete comm;
  if (auto ok = Settle(status, kWhat, deadline, part.find_failure); !ok) return ok.error();
  if (part.color == DevicePart::kNoColor) {
    delete comm;
    return std::unique_ptr<Communicator>();
  }
  while (comm->load() == nullptr) {  // may be late
    if (auto ok = Settle(ncclInProgress, kWhat, deadline, part.find_failure); !ok) {
      return ok.error();
    }
  }
  std::unique_ptr<Communicator> made(new Communicator(comm->load(), place.deaths, place.aborted));
  delete comm;
  if (auto ok = made->Settle(made->State(), kWhat, deadline, part.find_failure); !ok) {
    made->Abort();
    return ok.error();
  }
  return made;
}

Result<void*> Communicator::Register(void* data, size_t bytes) {
  MutexLock lock(mutex_);
  if (is_over_) return Aborted();
  void* handle = nullptr;
  ncclResult_t status = Nvidia().ncclCommRegister(comm_, data, bytes, &handle);
  if (status != ncclSuccess) return Failed("ncclCommRegister", status);
  return handle;
}

// NCCL itself deregisters the memory of a communicator that ends.
void Communicator::Deregister(void* handle) {
  MutexLock busy(busy_mutex_);
  MutexLock lock(mutex_);
  if (!is_over_ && !leaving_) static_cast<void>(Nvidia().ncclCommDeregister(comm_, handle));
}

Result<void> Communicator::Failure() {
  ncclResult_t state = State();
  if (state == ncclSuccess || state == ncclInProgress) return {};
  return Failed("NCCL", state);
}

void Communicator::Abort() { BeginAbort().wait_for(kAborting); }

// In a thread, because NCCL waits for its streams, and so for kernels of the program that
// are before its own.
std::shared_future<void> Communicator::BeginAbort() {
  MutexLock lock(mutex_);
  if (std::exchange(is_over_, true)) return abort_;
  std::promise<void> aborted;
  abort_ = aborted.get_future().share();
  auto thread = StartThread([comm = comm_, promise = std::move(aborted)]() mutable {
    static_cast<void>(Nvidia().ncclCommAbort(comm));
    promise.set_value();
  });
  if (thread) thread->detach();  // else the communicator is lost, as its process soon is
  return abort_;
}

ncclResult_t Communicator::State() {
  MutexLock lock(mutex_);
  if (is_over_) return ncclInProgress;  // the caller of Abort reports the reason
  ncclResult_t state = ncclSuccess;
  ncclResult_t status = Nvidia().ncclCommGetAsyncError(comm_, &state);
  return status == ncclSuccess ? state : status;
}

// Waits while NCCL works on what it has begun in the background.
Result<void> Communicator::Settle(ncclResult_t status, const char* what, TimePoint deadline,
                                  const FailureFinder& find_failure) {
  TimePoint began = MonotonicClock().Now();
  Duration pause = kMinPause;
  for (; status == ncclInProgress; status = State()) {
    if (aborted_.load()) return Aborted();
    if (deaths_.has_death()) return deaths_.ErrorSince(began);
    if (auto failure = find_failure ? find_failure() : std::nullopt) return *failure;
    TimePoint now = MonotonicClock().Now();
    if (now >= deadline) {
      return Error{ErrorCode::kTimeout, std::string(what) + " did not end in time"};
    }
    deaths_.SleepUntil(std::min(deadline, now + pause));
    pause = std::min(2 * pause, kMaxPause);
  }
  if (status != ncclSuccess) return Failed(what, status);
  return {};
}

}  // namespace rankrun::comm::nccl

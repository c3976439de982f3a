#include "comm/nccl/backend.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/roll_call.h"
#include "comm/core/time_left.h"
#include "comm/nccl/launch.h"

namespace rankrun::comm::nccl {
namespace {

using std::chrono::milliseconds;

// Longest wait in the store for the id, after which Abort is looked for.
constexpr milliseconds kSlice{50};

// Time-out for connecting to the store and for each reply.
constexpr milliseconds kStorePatience{5000};

Error Aborted() { return {ErrorCode::kCancelled, "the process group was broken meanwhile"}; }

class NcclWork final : public DeviceWork {
 public:
  NcclWork(std::shared_ptr<Connection> connection, int device, Event end)
      : connection_(std::move(connection)), device_(device), end_(std::move(end)) {}
  ~NcclWork() override {
    CurrentGpu current(device_);
    end_.reset();
  }

  Result<bool> Test() override {
    CurrentGpu current(device_);
    if (!current.entered()) return current.entered().error();
    auto done = end_->Test();
    // After the event, which an abort reaches, too.
    if (connection_->aborted.load()) return Aborted();
    if (!done || *done) return done;
    if (auto communicator = connection_->Get()) {
      if (auto ok = communicator->Failure(); !ok) return ok.error();
    }
    return false;
  }
  Result<void> WaitIn(void* stream) override {
    CurrentGpu current(device_);  // for the default stream
    if (!current.entered()) return current.entered();
    return end_->WaitIn(static_cast<cudaStream_t>(stream));
  }

 private:
  const std::shared_ptr<Connection> connection_;
  const int device_;
  std::optional<Event> end_;  // set until the destructor
};

}  // namespace

Result<std::unique_ptr<DeviceBackend>> NcclBackend::Create(const DeviceBackendConfig& config) {
  auto gpus = CountGpus();
  if (!gpus) return std::move(gpus).error();
  return std::unique_ptr<DeviceBackend>(new NcclBackend(config, *gpus));
}

NcclBackend::NcclBackend(const DeviceBackendConfig& config, int gpus)
    : config_(config), gpus_(gpus) {}

NcclBackend::~NcclBackend() {
  if (device_.load() == kNoDevice) return;
  CurrentGpu current(device_.load());
  std::shared_ptr<Communicator> last;
  {
    MutexLock lock(connection_->mutex);
    last = std::move(connection_->communicator);
  }
  last.reset();
  stream_.reset();
}

Result<void> NcclBackend::Check(const DeviceCall& call) const {
  if (auto ok = CheckDevice(call.device); !ok) return ok;
  return CheckSupport(call);
}

Result<void> NcclBackend::CheckDevice(int device) const {
  auto on = [](int number) { return "cuda:" + std::to_string(number); };
  if (device < 0 || device >= gpus_) {
    return Error{ErrorCode::kInvalid, "the call is for " + on(device) + ": want cuda:0.." +
                                          std::to_string(gpus_ - 1) + ", the GPUs of this process"};
  }
  const int used = device_.load();
  if (used == kNoDevice || used == device) return {};
  return Error{ErrorCode::kInvalid, "the call is for " + on(device) + ": want " + on(used) +
                                        ", as in this rank's first call"};
}

Result<std::shared_ptr<DeviceWork>> NcclBackend::Enqueue(const DeviceCall& call) {
  TimePoint deadline = MonotonicClock().Now() + call.timeout;
  // Again, because calls of several threads may have passed Check before the first one.
  if (auto ok = CheckDevice(call.device); !ok) return ok.error();
  CurrentGpu current(call.device);
  if (!current.entered()) return current.entered().error();
  if (stream_ == nullptr) {
    if (auto ok = Connect(call.device, deadline); !ok) {
      return Error(ok.error()).In("connect the GPUs");
    }
  }
  auto communicator = connection_->Get();
  auto ready = Event::RecordedIn(static_cast<cudaStream_t>(call.stream));
  if (!ready) return std::move(ready).error();
  if (auto ok = ready->WaitIn(stream_->get()); !ok) return ok.error();
  LaunchPlace place{.communicator = *communicator,
                    .rank = config_.group_rank,
                    .world_size = config_.world_size(),
                    .stream = stream_->get(),
                    .deadline = deadline};
  if (auto ok = Launch(call, place); !ok) return ok.error();
  auto end = Event::RecordedIn(stream_->get());
  if (!end) return std::move(end).error();
  return std::shared_ptr<DeviceWork>(
      std::make_shared<NcclWork>(connection_, call.device, *std::move(end)));
}

void NcclBackend::Abort() {
  connection_->aborted.store(true);
  if (auto communicator = connection_->Get()) communicator->Abort();
}

Result<void> NcclBackend::Connect(int device, TimePoint deadline) {
  auto stream = Stream::Make(config_.options.high_priority_stream ? Stream::Priority::kHigh
                                                                  : Stream::Priority::kNormal);
  if (!stream) return std::move(stream).error();
  auto id = AgreeOnId(deadline);
  if (!id) return std::move(id).error();
  auto communicator = Communicator::Connect(*id,
                                            {.rank = config_.group_rank,
                                             .size = config_.world_size(),
                                             .name = config_.name,
                                             .options = config_.options,
                                             .deaths = config_.deaths,
                                             .aborted = connection_->aborted},
                                            deadline);
  if (!communicator) return std::move(communicator).error();
  device_ = device;
  stream_ = std::make_unique<Stream>(*std::move(stream));
  {
    MutexLock lock(connection_->mutex);
    connection_->communicator = *std::move(communicator);
  }
  // An Abort that has not seen the communicator has set this before.
  if (connection_->aborted.load()) {
    connection_->Get()->Abort();
    return Aborted();
  }
  return {};
}

Result<ncclUniqueId> NcclBackend::AgreeOnId(TimePoint deadline) {
  // Another thread may be in a long wait on the group's own client.
  auto store = config_.store.CloneWith(kStorePatience, kStorePatience);
  if (!store) return std::move(store).error();
  const std::string key = config_.key_prefix + "/nccl/id";
  ncclUniqueId id{};
  if (config_.group_rank == 0) {
    ncclResult_t status = ncclGetUniqueId(&id);
    std::string value(id.internal, sizeof id.internal);
    if (status != ncclSuccess)
      value = std::string("ncclGetUniqueId: ") + ncclGetErrorString(status);
    if (auto ok = (*store)->Set(key, value); !ok) return ok.error();
    if (status != ncclSuccess) return Error{ErrorCode::kSystem, value};
    return id;
  }
  auto value = AwaitId(**store, key, deadline);
  if (!value) return std::move(value).error();
  if (value->size() != sizeof id.internal) {
    return Error{ErrorCode::kSystem, RanksInWords({config_.global_ranks[0]}) + ": " + *value};
  }
  std::memcpy(id.internal, value->data(), sizeof id.internal);
  return id;
}

Result<std::string> NcclBackend::AwaitId(store::Store& store, const std::string& key,
                                         TimePoint deadline) const {
  while (!connection_->aborted.load()) {
    milliseconds left = TimeLeft(deadline);
    auto value = store.Get(key, std::min(left, kSlice));
    bool goes_on = !value && value.error().code == ErrorCode::kTimeout && left > kSlice;
    if (!goes_on) return value;
  }
  return Aborted();
}

}  // namespace rankrun::comm::nccl

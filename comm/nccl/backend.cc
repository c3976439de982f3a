#include "comm/nccl/backend.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "comm/core/time_left.h"
#include "comm/nccl/launch.h"
#include "comm/nccl/unique_id.h"
#include "comm/nccl/work.h"

namespace rankrun::comm::nccl {
namespace {

using std::chrono::milliseconds;

// Longest wait in the store for the id, between two checks for Abort.
constexpr milliseconds kSlice{50};

// Result of Split.
struct ConnectedPart {
  int device;
  std::string name;                        // which the communicator keeps
  std::shared_ptr<Connection> connection;  // of the new group
};

// Returns memory that a send only reads.
Block Readable(const ConstBlock& block) {
  return {const_cast<std::byte*>(block.data), block.bytes};
}

}  // namespace

Result<std::unique_ptr<DeviceBackend>> NcclBackend::Create(const DeviceBackendConfig& config) {
  auto gpus = CountGpus();
  if (!gpus) return std::move(gpus).error();
  return std::unique_ptr<DeviceBackend>(new NcclBackend(config, *gpus));
}

NcclBackend::NcclBackend(const DeviceBackendConfig& config, int gpus)
    : config_(config), gpus_(gpus), connection_(std::make_shared<Connection>()) {
  if (config.connection == nullptr) return;
  auto part = std::static_pointer_cast<ConnectedPart>(config.connection);
  connection_ = part->connection;
  device_.store(part->device);
}

NcclBackend::~NcclBackend() {
  if (device_.load() == kNoDevice) return;
  CurrentGpu current(device_.load());
  MutexLock lock(mutex_);
  for (const auto& [key, lane] : lanes_) lane->Leave();
  if (auto communicator = connection_->Get()) communicator->Leave();
  lanes_.clear();
  static_cast<void>(connection_->Set(nullptr));
  stream_.reset();
}

Result<void> NcclBackend::Check(const DeviceCall& call) const {
  if (auto ok = CheckDevice(call.device); !ok) return ok;
  if (auto ok = CheckSupport(call); !ok) return ok;
  CurrentGpu current(call.device);  // for the default stream
  if (!current.entered()) return current.entered();
  return CheckRuns(static_cast<cudaStream_t>(call.stream));
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
                                        ", this rank's GPU in the group"};
}

// Checks again, because calls of several threads may have passed Check before the first
// one.
Result<void> NcclBackend::ChooseDevice(int device) {
  int none = kNoDevice;
  device_.compare_exchange_strong(none, device);
  return CheckDevice(device);
}

Result<std::shared_ptr<DeviceWork>> NcclBackend::Enqueue(const DeviceCall& call) {
  TimePoint deadline = MonotonicClock().Now() + call.timeout;
  if (auto ok = ChooseDevice(call.device); !ok) return ok.error();
  CurrentGpu current(call.device);
  if (!current.entered()) return current.entered().error();
  if (stream_ == nullptr) {
    if (auto ok = Connect(deadline); !ok) {
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

Result<std::shared_ptr<DeviceMessage>> NcclBackend::Start(const DeviceCall& call) {
  if (auto ok = ChooseDevice(call.device); !ok) return ok.error();
  CurrentGpu current(call.device);
  if (!current.entered()) return current.entered().error();
  auto ready = Event::RecordedIn(static_cast<cudaStream_t>(call.stream));
  if (!ready) return std::move(ready).error();
  auto lane = LaneFor(call);
  if (!lane) return std::move(lane).error();
  Block data = call.outputs.empty() ? Readable(call.inputs.front()) : call.outputs.front();
  auto message = std::make_shared<LaneMessage>(**lane, call.device, data, *std::move(ready));
  (*lane)->Add(message);
  return std::shared_ptr<DeviceMessage>(std::move(message));
}

Result<Lane*> NcclBackend::LaneFor(const DeviceCall& call) {
  if (store_of_lanes_ == nullptr) {
    // Another thread may be in a long wait on the group's own client.
    auto store = config_.store.CloneWith(kStorePatience, kStorePatience);
    if (!store) return std::move(store).error();
    store_of_lanes_ = *std::move(store);
  }
  MutexLock lock(mutex_);
  int peer = call.operation.root;
  bool is_send = call.operation.kind == Operation::Kind::kSend;
  std::unique_ptr<Lane>& lane = lanes_[{peer, is_send}];
  if (lane == nullptr) {
    lane = std::make_unique<Lane>(Lane::Place{.config = config_,
                                              .store = *store_of_lanes_,
                                              .peer = peer,
                                              .is_send = is_send,
                                              .device = call.device});
    if (aborted_) lane->BeginAbort();
  }
  return lane.get();
}

Result<std::shared_ptr<void>> NcclBackend::Split(const DevicePart& part, TimePoint deadline) {
  auto communicator = connection_->Get();
  if (communicator == nullptr) return std::shared_ptr<void>();
  CurrentGpu current(device_.load());
  if (!current.entered()) return current.entered().error();
  auto connected = std::make_shared<ConnectedPart>(ConnectedPart{
      .device = device_.load(), .name = part.name, .connection = std::make_shared<Connection>()});
  auto split = communicator->Split(part,
                                   {.rank = part.rank,
                                    .size = part.world_size,
                                    .name = connected->name.c_str(),
                                    .options = part.options,
                                    .deaths = config_.deaths,
                                    .aborted = connected->connection->aborted()},
                                   deadline);
  if (!split) return std::move(split).error();
  if (*split == nullptr) return std::shared_ptr<void>();
  if (auto ok = connected->connection->Set(*std::move(split)); !ok) return ok.error();
  return std::shared_ptr<void>(std::move(connected));
}

Result<std::shared_ptr<void>> NcclBackend::Register(Block memory, int device) {
  if (auto ok = CheckDevice(device); !ok) return ok.error();
  auto communicator = connection_->Get();
  if (communicator == nullptr) {
    return Error{
        ErrorCode::kInvalid,
        "NCCL is not connected: want InitOptions::device, or a collective on a GPU before"};
  }
  CurrentGpu current(device);
  if (!current.entered()) return current.entered().error();
  auto handle = communicator->Register(memory.data, memory.bytes);
  if (!handle) return std::move(handle).error();
  auto deregister = [connection = connection_, device](void* registered) {
    CurrentGpu gpu(device);
    if (auto still = connection->Get()) still->Deregister(registered);
  };
  return std::shared_ptr<void>(*handle, deregister);
}

void NcclBackend::Abort() {
  std::vector<std::shared_future<void>> ends;
  ends.push_back(connection_->BeginAbort());
  {
    MutexLock lock(mutex_);
    aborted_ = true;
    for (const auto& [key, lane] : lanes_) ends.push_back(lane->BeginAbort());
  }
  auto deadline = std::chrono::steady_clock::now() + kAborting;
  for (const auto& end : ends) {
    if (end.valid()) end.wait_until(deadline);
  }
}

Result<void> NcclBackend::Connect(TimePoint deadline) {
  auto stream = Stream::Make(config_.options);
  if (!stream) return std::move(stream).error();
  if (connection_->Get() != nullptr) {  // by Split
    stream_ = std::make_unique<Stream>(*std::move(stream));
    return {};
  }
  auto id = AgreeOnId(deadline);
  if (!id) return std::move(id).error();
  auto communicator = Communicator::Connect(*id,
                                            {.rank = config_.group_rank,
                                             .size = config_.world_size(),
                                             .name = config_.name.c_str(),
                                             .options = config_.options,
                                             .deaths = config_.deaths,
                                             .aborted = connection_->aborted()},
                                            deadline);
  if (!communicator) return std::move(communicator).error();
  stream_ = std::make_unique<Stream>(*std::move(stream));
  return connection_->Set(*std::move(communicator));
}

Result<ncclUniqueId> NcclBackend::AgreeOnId(TimePoint deadline) {
  // Another thread may be in a long wait on the group's own client.
  auto store = config_.store.CloneWith(kStorePatience, kStorePatience);
  if (!store) return std::move(store).error();
  const std::string key = config_.key_prefix + "/nccl/id";
  if (config_.group_rank == 0) return PublishId(**store, key);
  auto value = AwaitId(**store, key, deadline);
  if (!value) return std::move(value).error();
  return IdIn(*value, config_.global_ranks[0]);
}

Result<std::string> NcclBackend::AwaitId(store::Store& store, const std::string& key,
                                         TimePoint deadline) const {
  while (!connection_->aborted().load()) {
    milliseconds left = TimeLeft(deadline);
    auto value = store.Get(key, std::min(left, kSlice));
    bool goes_on = !value && value.error().code == ErrorCode::kTimeout && left > kSlice;
    if (!goes_on) return value;
  }
  return Connection::Broken();
}

}  // namespace rankrun::comm::nccl

#include "comm/nccl/lane.h"

#include <algorithm>
#include <utility>

#include "comm/nccl/nvidia.h"
#include "comm/nccl/unique_id.h"

namespace rankrun::comm::nccl {
namespace {

using std::chrono::milliseconds;

// Pauses between two checks of the store for the id.
constexpr milliseconds kMinPause{2};
constexpr milliseconds kMaxPause{50};

// Ranks in the communicator of a lane.
constexpr int kSender = 0;
constexpr int kReceiver = 1;

}  // namespace

Result<bool> LaneMessage::Enqueue() {
  if (work_ == nullptr) {
    if (auto ok = lane_.Advance(); !ok) return ok.error();
  }
  return work_ != nullptr;
}

Result<void> Lane::Advance() {
  CurrentGpu current(place_.device);
  if (!current.entered()) return current.entered();
  for (;;) {
    auto goes_on = Step();
    if (!goes_on) return std::move(goes_on).error();
    if (!*goes_on) return {};
  }
}

void Lane::Leave() {
  if (auto communicator = connection_->Get()) communicator->Leave();
}

Result<bool> Lane::Step() {
  auto communicator = connection_->Get();
  if (communicator == nullptr) return Connect();
  auto is_idle = communicator->Poll();
  if (!is_idle || !*is_idle) return is_idle;
  if (launched_ != nullptr) {
    auto end = Event::RecordedIn(stream_->get());
    if (!end) return std::move(end).error();
    launched_->work_ = std::make_unique<NcclWork>(connection_, place_.device, *std::move(end));
    launched_.reset();
  }
  if (waiting_.empty()) return false;
  launched_ = std::move(waiting_.front());
  waiting_.pop_front();
  if (auto ok = Launch(*launched_); !ok) return ok.error();
  return true;
}

Result<void> Lane::Launch(const LaneMessage& message) {
  if (auto ok = message.ready_->WaitIn(stream_->get()); !ok) return ok;
  if (message.data_.bytes == 0) return {};
  auto enqueued = connection_->Get()->Enqueue([&](ncclComm_t comm) {
    const Block& data = message.data_;
    return place_.is_send
               ? Nvidia().ncclSend(data.data, data.bytes, ncclUint8, kReceiver, comm,
                                   stream_->get())
               : Nvidia().ncclRecv(data.data, data.bytes, ncclUint8, kSender, comm, stream_->get());
  });
  if (!enqueued) return std::move(enqueued).error();
  return {};
}

Result<bool> Lane::Connect() {
  auto id = Meet();
  if (!id) return std::move(id).error();
  if (!*id) return false;
  const DeviceBackendConfig& config = place_.config;
  if (!stream_) {
    auto stream = Stream::Make(config.options);
    if (!stream) return std::move(stream).error();
    stream_.emplace(*std::move(stream));
  }
  auto begun = Communicator::Begin(**id, {.rank = place_.is_send ? kSender : kReceiver,
                                          .size = 2,
                                          .name = name_.c_str(),
                                          .options = config.options,
                                          .deaths = config.deaths,
                                          .aborted = connection_->aborted()});
  if (!begun) return std::move(begun).error();
  if (auto ok = connection_->Set(*std::move(begun)); !ok) return ok.error();
  return true;
}

Result<std::optional<ncclUniqueId>> Lane::Meet() {
  if (connection_->aborted().load()) return Connection::Broken();
  TimePoint now = MonotonicClock().Now();
  if (now < next_check_) return std::optional<ncclUniqueId>();
  pause_ = std::clamp<Duration>(2 * pause_, kMinPause, kMaxPause);
  next_check_ = now + pause_;
  const DeviceBackendConfig& config = place_.config;
  store::Store& store = place_.store;
  int sender = place_.is_send ? config.group_rank : place_.peer;
  int receiver = place_.is_send ? place_.peer : config.group_rank;
  const std::string key =
      config.key_prefix + "/nccl/" + std::to_string(sender) + "-" + std::to_string(receiver);
  if (place_.is_send) {
    auto id = PublishId(store, key);
    if (!id) return std::move(id).error();
    return std::optional(*id);
  }
  auto is_there = store.Check(std::span(&key, 1));
  if (!is_there) return std::move(is_there).error();
  if (!*is_there) return std::optional<ncclUniqueId>();
  auto value = store.Get(key, kStorePatience);
  if (!value) return std::move(value).error();
  auto id = IdIn(*value, config.global_ranks[static_cast<size_t>(sender)]);
  if (!id) return std::move(id).error();
  return std::optional(*id);
}

}  // namespace rankrun::comm::nccl

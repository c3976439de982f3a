#include "comm/async/device_messages.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;

// Tags of the notes, behind those of the program's messages.
constexpr uint64_t kNotesOfSenders = kDeviceTags;
constexpr uint64_t kNotesOfReceivers = kDeviceTags + 1;

bool IsSend(const DeviceCall& call) { return call.operation.kind == Kind::kSend; }

uint64_t BytesOf(const DeviceCall& call) {
  return IsSend(call) ? call.inputs.front().bytes : call.outputs.front().bytes;
}

}  // namespace

// Work that the device may not have yet.
class DeviceMessages::Work final : public DeviceWork {
 public:
  explicit Work(std::shared_ptr<DeviceMessage> message) : message_(std::move(message)) {}

  // Ends the waits for the way to the device; with an error if it ends before.
  void Arrive(Result<void> result) {
    {
      MutexLock lock(mutex_);
      if (has_arrived_) return;
      has_arrived_ = true;
      result_ = std::move(result);
    }
    arrived_.NotifyAll();
  }

  Result<bool> Test() override { return message_->Test(); }
  Result<void> WaitIn(void* stream) override {
    {
      MutexLock lock(mutex_);
      while (!has_arrived_ && WaitUnlessInterrupted(arrived_, mutex_, TimePoint::max())) {
      }
      if (!result_) return result_;
      if (!has_arrived_) return InterruptibleCall::Failure();
    }
    return message_->WaitIn(stream);
  }

 private:
  const std::shared_ptr<DeviceMessage> message_;
  Mutex mutex_;
  CondVar arrived_;
  bool has_arrived_ GUARDED_BY(mutex_) = false;
  Result<void> result_ GUARDED_BY(mutex_);
};

struct DeviceMessages::InFlight {
  const DeviceCall call;
  const TimePoint since;
  const Note mine;
  Note theirs = {};
  const std::shared_ptr<DeviceMessage> message;
  const std::shared_ptr<Work> work;
  std::shared_ptr<WorkState> compared = {};  // ends when both notes have arrived
  const std::shared_ptr<WorkState> state = std::make_shared<WorkState>();
  bool is_enqueued = false;  // for Start, then for Progress
};

DeviceMessages::DeviceMessages(DeviceBackend& backend, const DeviceHooks& hooks)
    : backend_(backend), hooks_(hooks), failures_(hooks), thread_([this] { return Progress(); }) {}

Result<std::shared_ptr<WorkState>> DeviceMessages::Start(const DeviceCall& call) {
  auto failed = [&](const Error& error) {
    return hooks_.failed(call.operation, error, call.timeout);
  };
  MutexLock lock(mutex_);
  auto message = backend_.Start(call);
  if (!message) return failed(message.error());
  Handle handle(new InFlight{.call = call,
                             .since = MonotonicClock().Now(),
                             .mine = {.tag = call.operation.tag,
                                      .bytes = BytesOf(call),
                                      .dtype = static_cast<uint64_t>(call.operation.dtype)},
                             .message = *message,
                             .work = std::make_shared<Work>(*message)});
  handle->state->SetDeviceWork(handle->work);
  if (auto ok = ExchangeNotes(handle); !ok) return ok.error();
  if (auto ok = TakeToDevice(*handle); !ok) return failed(ok.error());
  in_flight_.push_back(handle);
  if (auto ok = thread_.Wake(); !ok) {
    in_flight_.pop_back();
    return failed(ok.error());
  }
  return handle->state;
}

// The notes stay in memory until they have arrived, or the group is broken.
Result<void> DeviceMessages::ExchangeNotes(const Handle& handle) {
  std::vector<std::shared_ptr<WorkState>> states;
  auto start = [&](Kind direction, uint64_t tag, const Note& note) -> Result<void> {
    auto* data = reinterpret_cast<std::byte*>(const_cast<Note*>(&note));
    auto state = hooks_.start_message(handle->call.operation, direction, tag, {data, sizeof note});
    if (!state) return std::move(state).error();
    (*state)->Then([handle] {});
    states.push_back(*std::move(state));
    return {};
  };
  bool is_send = IsSend(handle->call);
  auto sent = start(Kind::kSend, is_send ? kNotesOfSenders : kNotesOfReceivers, handle->mine);
  if (!sent) return sent;
  auto received = start(Kind::kRecv, is_send ? kNotesOfReceivers : kNotesOfSenders, handle->theirs);
  if (!received) return received;
  handle->compared = WorkState::OfAll(states);
  return {};
}

Result<void> DeviceMessages::TakeToDevice(InFlight& one) {
  if (one.is_enqueued) return {};
  auto enqueued = one.message->Enqueue();
  if (!enqueued) return std::move(enqueued).error();
  one.is_enqueued = *enqueued;
  if (one.is_enqueued) one.work->Arrive({});
  return {};
}

void DeviceMessages::Stop() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    while (!in_flight_.empty()) emptied_.Wait(mutex_);
  }
  thread_.Stop();
}

bool DeviceMessages::Progress() {
  std::vector<Handle> all;
  {
    MutexLock lock(mutex_);
    all.assign(in_flight_.begin(), in_flight_.end());
  }
  bool has_ended = false;
  for (const Handle& one : all) {
    auto end = EndOf(*one);
    if (!end) continue;
    has_ended = true;
    one->work->Arrive(*end);
    bool is_received = *end && !IsSend(one->call);
    one->state->Finish(*std::move(end), is_received ? one->call.operation.global_root : -1);
    MutexLock lock(mutex_);
    in_flight_.remove(one);
  }
  {
    MutexLock lock(mutex_);
    if (in_flight_.empty()) {
      emptied_.NotifyAll();
      return false;
    }
  }
  pause_ = has_ended ? kMinDevicePause : std::min(2 * pause_, kMaxDevicePause);
  std::this_thread::sleep_for(pause_);
  return true;
}

std::optional<Result<void>> DeviceMessages::EndOf(InFlight& one) {
  bool is_compared = one.compared->done();
  // The notes have the error of a rank that is lost, with its full text.
  if (is_compared && !one.compared->result()) return one.compared->result();
  auto done = Advance(one, is_compared);
  if (done && *done) return Result<void>();
  auto why = done ? WhyOver(one, is_compared) : std::optional(done.error());
  if (why) return Result<void>(hooks_.failed(one.call.operation, *why, one.call.timeout));
  return std::nullopt;
}

// Returns whether the message is complete.
Result<bool> DeviceMessages::Advance(InFlight& one, bool is_compared) {
  {
    MutexLock lock(mutex_);
    if (auto ok = TakeToDevice(one); !ok) return ok.error();
  }
  if (!is_compared) return false;
  if (auto mismatch = Mismatch(one)) return *std::move(mismatch);
  if (!one.is_enqueued) return false;
  return one.message->Test();
}

std::optional<Error> DeviceMessages::WhyOver(InFlight& one, bool is_compared) {
  auto awaited = one.state->awaited_since();
  {
    MutexLock lock(mutex_);
    if (is_stopping_ && !awaited) {
      return Error{ErrorCode::kSystem, "this rank destroyed the process group"};
    }
  }
  if (is_compared) {
    if (auto failure = failures_.Find(one.since)) return failure;
  }
  if (hooks_.deaths.has_death()) return hooks_.deaths.ErrorSince(one.since);
  if (!awaited || MonotonicClock().Now() < *awaited + one.call.timeout) return std::nullopt;
  if (is_compared) {
    return Error{ErrorCode::kTimeout,
                 "both ranks have made the call, but the device has not completed it"};
  }
  return Error{ErrorCode::kTimeout, std::string("no matching ") +
                                        (IsSend(one.call) ? "Recv" : "Send") + " after " +
                                        std::to_string(one.call.timeout.count()) + " ms"};
}

std::optional<Error> DeviceMessages::Mismatch(const InFlight& one) const {
  const Note& sent = IsSend(one.call) ? one.mine : one.theirs;
  const Note& expected = IsSend(one.call) ? one.theirs : one.mine;
  if (sent == expected) return std::nullopt;
  auto side = [](int rank, const Note& note) {
    return MessageSide{.name = "rank " + std::to_string(rank),
                       .dtype = static_cast<DType>(note.dtype),
                       .bytes = note.bytes};
  };
  int peer = one.call.operation.global_root;
  int sender = IsSend(one.call) ? hooks_.global_rank : peer;
  int receiver = IsSend(one.call) ? peer : hooks_.global_rank;
  std::string text = DescribeMismatch(sent.tag, side(sender, sent), side(receiver, expected));
  if (sent.tag != expected.tag) text += " with tag " + std::to_string(expected.tag);
  return Error{ErrorCode::kMismatch, text};
}

}  // namespace rankrun::comm

#include <utility>

#include "base/interruptible_call.h"
#include "base/status/status_page.h"
#include "comm/async/work_handle.h"
#include "comm/core/current_stream.h"
#include "comm/group/arguments.h"
#include "comm/group/group.h"

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;

Block Writable(const ConstTensor& tensor) {
  ConstBlock block = BlockOf(tensor);
  return {const_cast<std::byte*>(block.data), block.bytes};
}

// Returns "global rank 3 (tag 5)".
std::string PeerOf(const Messages::Message& message) {
  const std::string rank =
      message.peer ? "global rank " + std::to_string(message.operation.global_root) : "any rank";
  return rank + " (" + TagInWords(message.envelope.tag) + ")";
}

int PeerRankOf(const Messages::Message& message) {
  return message.peer ? message.operation.global_root : -1;
}

// Returns the text of the status page while a call waits for its message.
std::string WaitOf(const Messages::Message& message) {
  return message.is_send ? "its message to " + PeerOf(message) + " to be taken"
                         : "a message from " + PeerOf(message);
}

}  // namespace

Result<Messages::Message> Group::MessageTo(Kind kind, const ConstTensor& tensor, Source peer,
                                           uint64_t tag, Timeout timeout) const {
  Operation operation{.kind = kind,
                      .dtype = tensor.dtype,
                      .device = tensor.device.type,
                      .count = tensor.count,
                      .tag = tag};
  std::string name = NameOf(operation) + Place();
  auto limit = Effective(timeout);
  if (!limit) return Error(limit.error()).In(name);
  if (auto ok = CheckTensor("tensor", tensor); !ok) return Error(ok.error()).In(name);
  std::optional<int> rank;
  if (peer) {
    auto found = GroupRankIn(identity_.global_ranks, *peer);
    if (!found) return Error(found.error()).In(name);
    rank = *found;
    SetRoot(operation, *found);
  }
  if (broken_.is_set()) return Broken(Describe(operation) + Place());
  return Messages::Message{.operation = operation,
                           .is_send = kind == Kind::kSend,
                           .envelope = {.tag = tag, .dtype = tensor.dtype},
                           .peer = rank,
                           .since = std::chrono::steady_clock::now(),
                           .timeout = *limit};
}

Error Group::MessageFailed(const Messages::Message& message, Error error) {
  const bool sends_objects = message.operation.is_of_objects() && message.is_send;
  if (error.code == ErrorCode::kInvalid && sends_objects) {
    error = std::move(error).In(
        "the receiver asks for another number, a uint64 for each, or has no memory for them");
  }
  return Failed(message.operation, std::move(error), message.timeout);
}

Result<void> Group::Send(const ConstTensor& tensor, Peer destination, uint64_t tag,
                         Timeout timeout) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return Uninvolved("Send");
  auto message = MessageTo(Kind::kSend, tensor, destination, tag, timeout);
  if (!message) return message.error();
  if (IsOnDevice(tensor)) return MoveOnDevice(*message, tensor);
  if (message->peer == identity_.group_rank) {
    bool has_other_way = !message->operation.is_of_objects();
    return Error{ErrorCode::kInvalid, NameOf(message->operation) + Place() +
                                          ": the destination is this rank: want another" +
                                          (has_other_way ? ", or ISend" : "")};
  }
  const StatusPage* page = StatusPage::OfThisProcess();
  Awaited awaited(page, page == nullptr ? "" : WaitOf(*message), PeerRankOf(*message));
  OperationEvent event = events_.Begin(message->operation);
  auto sent = messages_->Move(*message, Writable(tensor));
  event.End(static_cast<bool>(sent));
  if (!sent) return std::move(sent).error();
  return {};
}

Result<int> Group::Recv(const Tensor& tensor, Source source, uint64_t tag, Timeout timeout) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) {
    if (auto ok = Uninvolved("Recv"); !ok) return std::move(ok).error();
    return -1;
  }
  auto message = MessageTo(Kind::kRecv, tensor, source, tag, timeout);
  if (!message) return message.error();
  if (IsOnDevice(tensor)) {
    if (auto ok = MoveOnDevice(*message, tensor); !ok) return ok.error();
    return message->operation.global_root;
  }
  const StatusPage* page = StatusPage::OfThisProcess();
  Awaited awaited(page, page == nullptr ? "" : WaitOf(*message), PeerRankOf(*message));
  OperationEvent event = events_.Begin(message->operation);
  auto source_rank = messages_->Move(*message, BlockOf(tensor));
  event.End(static_cast<bool>(source_rank), source_rank ? *source_rank : -1);
  return source_rank;
}

Result<Work> Group::ISend(const ConstTensor& tensor, Peer destination, uint64_t tag,
                          Timeout timeout) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kSend);
  auto message = MessageTo(Kind::kSend, tensor, destination, tag, timeout);
  return message ? Begin(*message, tensor) : message.error();
}

Result<Work> Group::IRecv(const Tensor& tensor, Source source, uint64_t tag, Timeout timeout) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kRecv);
  auto message = MessageTo(Kind::kRecv, tensor, source, tag, timeout);
  return message ? Begin(*message, tensor) : message.error();
}

Result<void> Group::MoveOnDevice(const Messages::Message& message, const ConstTensor& tensor) {
  OperationEvent event = events_.Begin(message.operation);
  auto begun = BeginOnDevice(message, tensor);
  EndWith(event, begun);
  if (!begun) return std::move(begun).error();
  const StatusPage* page = StatusPage::OfThisProcess();
  Awaited awaited(page, page == nullptr ? "" : WaitOf(message), PeerRankOf(message));
  auto ok = (*begun)->AwaitIn(CurrentStream());
  if (ok || !InterruptibleCall::WasInterrupted() || (*begun)->done()) return ok;
  return MessageFailed(message, std::move(ok).error());
}

Result<Work> Group::Begin(const Messages::Message& message, const ConstTensor& tensor) {
  OperationEvent event = events_.Begin(message.operation);
  auto state = IsOnDevice(tensor) ? BeginOnDevice(message, tensor)
                                  : StartInMemory(message, Writable(tensor));
  EndWith(event, state);
  if (!state) return std::move(state).error();
  return Work(0, std::make_shared<WorkHandle>(*std::move(state), message.operation));
}

Result<std::shared_ptr<WorkState>> Group::StartInMemory(const Messages::Message& message,
                                                        Block data) {
  auto state = messages_->Start(message, data);
  if (!state || (*state)->done()) return state;
  // Without a thread that moves it, the message must fail, so that nothing uses
  // the caller's memory any more.
  if (auto ok = progress_thread_.Wake(); !ok) return MessageFailed(message, std::move(ok).error());
  return state;
}

}  // namespace rankrun::comm

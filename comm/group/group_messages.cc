#include <utility>

#include "base/status/status_page.h"
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

}  // namespace

Result<Messages::Message> Group::MessageTo(Kind kind, const ConstTensor& tensor, Source peer,
                                           uint64_t tag, Timeout timeout) const {
  Operation operation{.kind = kind, .dtype = tensor.dtype, .count = tensor.count, .tag = tag};
  std::string name = NameOf(operation) + Place();
  auto limit = Effective(timeout);
  if (!limit) return Error(limit.error()).In(name);
  if (auto ok = CheckCpuTensor("tensor", tensor); !ok) return Error(ok.error()).In(name);
  std::optional<int> rank;
  if (peer) {
    auto found = GroupRankIn(identity_.global_ranks, *peer);
    if (!found) return Error(found.error()).In(name);
    rank = *found;
    SetRoot(operation, *found);
  }
  if (broken_.load()) return Broken(Describe(operation) + Place());
  return Messages::Message{.operation = operation,
                           .envelope = {.tag = tag, .dtype = tensor.dtype},
                           .peer = rank,
                           .since = std::chrono::steady_clock::now(),
                           .timeout = *limit};
}

Error Group::MessageFailed(const Messages::Message& message, Error error) {
  const bool is_of_objects =
      message.operation.is_of_objects() && message.operation.kind == Kind::kSend;
  if (error.code == ErrorCode::kInvalid && is_of_objects) {
    error = std::move(error).In(
        "the receiver asks for another number, a uint64 for each, or has no memory for them");
  }
  return Failed(message.operation, std::move(error), message.timeout);
}

Result<void> Group::Send(const ConstTensor& tensor, Peer destination, uint64_t tag,
                         Timeout timeout) {
  if (!is_member()) return Uninvolved("Send");
  auto message = MessageTo(Kind::kSend, tensor, destination, tag, timeout);
  if (!message) return message.error();
  if (message->peer == identity_.group_rank) {
    bool has_other_way = !message->operation.is_of_objects();
    return Error{ErrorCode::kInvalid, NameOf(message->operation) + Place() +
                                          ": the destination is this rank: want another" +
                                          (has_other_way ? ", or ISend" : "")};
  }
  const StatusPage* page = StatusPage::OfThisProcess();
  Awaited awaited(page,
                  page == nullptr ? "" : "its message to " + PeerOf(*message) + " to be taken");
  auto sent = messages_->Move(*message, Writable(tensor));
  if (!sent) return std::move(sent).error();
  return {};
}

Result<int> Group::Recv(const Tensor& tensor, Source source, uint64_t tag, Timeout timeout) {
  if (!is_member()) {
    if (auto ok = Uninvolved("Recv"); !ok) return std::move(ok).error();
    return -1;
  }
  auto message = MessageTo(Kind::kRecv, tensor, source, tag, timeout);
  if (!message) return message.error();
  const StatusPage* page = StatusPage::OfThisProcess();
  Awaited awaited(page, page == nullptr ? "" : "a message from " + PeerOf(*message));
  return messages_->Move(*message, BlockOf(tensor));
}

Result<Work> Group::ISend(const ConstTensor& tensor, Peer destination, uint64_t tag) {
  if (!is_member()) return UninvolvedWork(Kind::kSend);
  auto message = MessageTo(Kind::kSend, tensor, destination, tag, {});
  if (!message) return message.error();
  return Begin(*message, Writable(tensor));
}

Result<Work> Group::IRecv(const Tensor& tensor, Source source, uint64_t tag) {
  if (!is_member()) return UninvolvedWork(Kind::kRecv);
  auto message = MessageTo(Kind::kRecv, tensor, source, tag, {});
  if (!message) return message.error();
  return Begin(*message, BlockOf(tensor));
}

Result<Work> Group::Begin(const Messages::Message& message, Block data) {
  auto state = messages_->Start(message, data);
  if (!state) return std::move(state).error();
  if ((*state)->done()) return Work(0, *std::move(state));
  // Without a thread that moves it, the message must fail, so that nothing uses
  // the caller's memory any more.
  if (auto ok = progress_thread_.Wake(); !ok) return MessageFailed(message, std::move(ok).error());
  return Work(0, *std::move(state));
}

}  // namespace rankrun::comm

#include <utility>

#include "base/status_page.h"
#include "comm/arguments.h"
#include "comm/group.h"

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;

Block Writable(const ConstTensor& tensor) {
  const ConstBlock block = BlockOf(tensor);
  return {const_cast<std::byte*>(block.data), block.bytes};
}

// " from global rank 3 (tag 5)".
std::string FromWhom(const Source& source, uint64_t tag) {
  const std::string end = " (tag " + std::to_string(tag) + ")";
  if (!source) return " from any rank" + end;
  return (source->is_global() ? " from global rank " : " from group rank ") +
         std::to_string(source->rank()) + end;
}

}  // namespace

Result<Messages::Message> Group::MessageTo(Kind kind, const ConstTensor& tensor, Source peer,
                                           uint64_t tag, Timeout timeout) const {
  Operation operation{.kind = kind, .dtype = tensor.dtype, .count = tensor.count};
  const auto limit = Effective(timeout);
  if (!limit) return Error(limit.error()).In(NameOf(kind) + Place());
  if (auto ok = CheckTensor("tensor", tensor); !ok)
    return Error(ok.error()).In(NameOf(kind) + Place());
  std::optional<int> rank;
  if (peer) {
    const auto found = GroupRankIn(identity_.global_ranks, *peer);
    if (!found) return Error(found.error()).In(NameOf(kind) + Place());
    rank = *found;
    operation.root = *found;
  }
  if (broken_.load()) return Broken(Describe(operation) + Place());
  return Messages::Message{.operation = operation,
                           .envelope = {.tag = tag, .dtype = tensor.dtype},
                           .peer = rank,
                           .since = std::chrono::steady_clock::now(),
                           .timeout = *limit};
}

Error Group::MessageFailed(const Messages::Message& message, Error error) {
  const std::string what = Describe(message.operation);
  if (error.code != ErrorCode::kInvalid) {
    error = Break(what, std::move(error), {.since = message.since, .timeout = message.timeout});
  }
  return std::move(error).In(what + Place());
}

Result<void> Group::Send(const ConstTensor& tensor, Peer destination, uint64_t tag,
                         Timeout timeout) {
  if (!is_member()) return Uninvolved("Send");
  const auto message = MessageTo(Kind::kSend, tensor, destination, tag, timeout);
  if (!message) return message.error();
  if (message->peer == identity_.group_rank) {
    return Error{ErrorCode::kInvalid,
                 "Send" + Place() + ": the destination is this rank: want another, or ISend"};
  }
  auto sent = messages_->Move(*message, Writable(tensor));
  if (!sent) return std::move(sent).error();
  return {};
}

Result<int> Group::Recv(const Tensor& tensor, Source source, uint64_t tag, Timeout timeout) {
  if (!is_member()) {
    if (auto ok = Uninvolved("Recv"); !ok) return std::move(ok).error();
    return -1;
  }
  const auto message = MessageTo(Kind::kRecv, tensor, source, tag, timeout);
  if (!message) return message.error();
  const Awaited awaited(StatusPage::OfThisProcess(), "a message" + FromWhom(source, tag));
  return messages_->Move(*message, BlockOf(tensor));
}

Result<Work> Group::ISend(const ConstTensor& tensor, Peer destination, uint64_t tag) {
  if (!is_member()) return UninvolvedWork(Kind::kSend);
  const auto message = MessageTo(Kind::kSend, tensor, destination, tag, {});
  if (!message) return message.error();
  return Begin(*message, Writable(tensor));
}

Result<Work> Group::IRecv(const Tensor& tensor, Source source, uint64_t tag) {
  if (!is_member()) return UninvolvedWork(Kind::kRecv);
  const auto message = MessageTo(Kind::kRecv, tensor, source, tag, {});
  if (!message) return message.error();
  return Begin(*message, BlockOf(tensor));
}

Result<Work> Group::Begin(const Messages::Message& message, Block data) {
  auto state = std::make_shared<WorkState>();
  if (auto ok = messages_->Start(message, data, state); !ok) return std::move(ok).error();
  if (!state->done()) queue_.Wake();
  return Work(0, std::move(state));
}

}  // namespace rankrun::comm

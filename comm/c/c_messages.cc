#include <rankrun/c/messages.h>
#include <rankrun/dlpack.h>

#include "comm/c/c_guard.h"
#include "comm/group/process_group_access.h"

namespace {

using rankrun::GlobalRank;
using rankrun::Tensor;
using rankrun::comm::BatchMessage;
using rankrun::comm::Clear;
using rankrun::comm::GroupOf;
using rankrun::comm::Guarded;
using rankrun::comm::Hand;
using rankrun::comm::ListOf;
using rankrun::comm::NotNull;
using rankrun::comm::SourceOf;
using rankrun::comm::StartAll;
using rankrun::comm::TensorOf;
using rankrun::comm::ThrowInvalid;
using rankrun::comm::TimeoutOf;

BatchMessage MessageOf(const rankrun_message& message) {
  if (message.reserved != 0) ThrowInvalid("messages.reserved is not 0");
  bool is_send = message.is_send != 0;
  return {.is_send = is_send,
          .tensor = TensorOf(&message.tensor, "messages.tensor"),
          .peer = is_send ? GlobalRank{message.peer} : SourceOf(message.peer),
          .tag = message.tag};
}

rankrun_tensor InC(const Tensor& tensor) {
  return {.data = tensor.data,
          .count = tensor.count,
          .row = tensor.row,
          .device_index = tensor.device.index,
          .dtype = static_cast<uint8_t>(tensor.dtype),
          .device_type = static_cast<uint8_t>(tensor.device.type),
          .reserved = 0};
}

// Memory that a receiver of a DLPack tensor holds.
struct Loan {
  ~Loan() {
    if (release != nullptr) release(context);
  }
  void (*release)(void* context) = nullptr;
  void* context = nullptr;
};

}  // namespace

extern "C" {

rankrun_status rankrun_send(rankrun_group* group, const rankrun_tensor* tensor, int destination,
                            int tag, int64_t timeout_ms) {
  return Guarded([=] {
    Tensor data = TensorOf(tensor, "tensor");
    GroupOf(group).Send(data, GlobalRank{destination}, tag, TimeoutOf(timeout_ms));
  });
}

rankrun_status rankrun_recv(rankrun_group* group, const rankrun_tensor* tensor, int source, int tag,
                            int64_t timeout_ms, int* sender) {
  return Guarded([=] {
    Tensor data = TensorOf(tensor, "tensor");
    int from = GroupOf(group).Recv(data, SourceOf(source), tag, TimeoutOf(timeout_ms));
    if (sender != nullptr) *sender = from;
  });
}

rankrun_status rankrun_isend(rankrun_group* group, const rankrun_tensor* tensor, int destination,
                             int tag, rankrun_work** work) {
  return Guarded([=] {
    Clear(work, "work");
    Tensor data = TensorOf(tensor, "tensor");
    Hand(GroupOf(group).ISend(data, GlobalRank{destination}, tag, {}), work);
  });
}

rankrun_status rankrun_irecv(rankrun_group* group, const rankrun_tensor* tensor, int source,
                             int tag, rankrun_work** work) {
  return Guarded([=] {
    Clear(work, "work");
    Hand(GroupOf(group).IRecv(TensorOf(tensor, "tensor"), SourceOf(source), tag, {}), work);
  });
}

rankrun_status rankrun_batch(rankrun_group* group, const rankrun_message* messages, size_t count,
                             rankrun_work** works) {
  return Guarded([=] {
    auto batch = ListOf(messages, count, "messages");
    if (count > 0) NotNull(works, "works");
    std::fill_n(works, count, nullptr);
    std::vector<BatchMessage> list;
    for (const rankrun_message& message : batch) list.push_back(MessageOf(message));
    auto started = StartAll(GroupOf(group), list);
    for (size_t i = 0; i < count; ++i) Hand(std::move(started[i]), &works[i]);
  });
}

rankrun_status rankrun_from_dlpack(const DLManagedTensor* managed, rankrun_tensor* tensor) {
  return Guarded(
      [=] { NotNull(tensor, "tensor") = InC(rankrun::FromDLPack(NotNull(managed, "managed"))); });
}

rankrun_status rankrun_to_dlpack(const rankrun_tensor* tensor, void (*release)(void* context),
                                 void* context, DLManagedTensor** managed) {
  return Guarded([=] {
    Clear(managed, "managed");
    Tensor data = TensorOf(tensor, "tensor");
    auto loan = std::make_shared<Loan>();
    *managed = rankrun::ToDLPack(data, loan);
    loan->context = context;
    loan->release = release;  // set last, so that an error does not call it
  });
}

}  // extern "C"

#include <utility>

#include <rankrun/process_group.h>

#include "comm/core/throw.h"
#include "comm/group/arguments.h"
#include "comm/group/group.h"
#include "comm/group/process_group_access.h"

namespace rankrun {

using comm::GroupOf;
using comm::Unwrap;

namespace comm {

namespace {

Result<void> CheckTag(int tag) {
  if (tag >= 0) return {};
  return Error{ErrorCode::kInvalid, "tag is " + std::to_string(tag) + ": want 0 or more"};
}

Result<void> Check(const Group& group, const BatchMessage& message) {
  if (auto ok = CheckTag(message.tag); !ok) return ok;
  if (!message.is_send && !message.can_receive) {
    return Error{ErrorCode::kInvalid, "the tensor of a receive is const"};
  }
  if (message.is_send && !message.peer) {
    return Error{ErrorCode::kInvalid, "a send has no peer: want a rank"};
  }
  if (!group.is_member()) return {};
  if (message.peer) {
    auto peer = GroupRankIn(group.identity().global_ranks, *message.peer);
    if (!peer) return peer.error();
  }
  return CheckTensor("tensor", message.tensor);
}

Result<Work> Start(Group& group, const BatchMessage& message) {
  auto tag = static_cast<uint64_t>(message.tag);
  if (message.is_send) return group.ISend(message.tensor, *message.peer, tag, {});
  return group.IRecv(message.tensor, message.peer, tag, {});
}

int RankIn(const GroupIdentity& identity, const std::string& operation, Peer peer) {
  auto rank = GroupRankIn(identity.global_ranks, peer);
  if (!rank) Throw(std::move(rank).error().In(operation + " of " + PlaceIn(identity)));
  return *rank;
}

}  // namespace

Group& AnyGroupOf(const ProcessGroup& group) {
  if (group.group_ != nullptr) return *group.group_;
  Throw({ErrorCode::kInvalid, group.place_ + " is destroyed: want no call after Destroy()"});
}

Error ErrorOfFork(const Group& group) {
  return group.home().ErrorOfFork(RanksInWords({group.identity().global_rank}),
                                  "its process groups");
}

Group& GroupOf(const ProcessGroup& group, const char* call) {
  Group& found = AnyGroupOf(group);
  if (found.home().is_here()) [[likely]]
    return found;
  Throw(ErrorOfFork(found).In(CallIn(found, call)));
}

const GroupIdentity& IdentityOf(const ProcessGroup& group) { return AnyGroupOf(group).identity(); }

std::string CallIn(const Group& group, const std::string& operation) {
  return operation + " of " + PlaceIn(group.identity());
}

uint64_t CheckedTag(const Group& group, const char* operation, int tag) {
  if (auto ok = CheckTag(tag); !ok) Throw(std::move(ok).error().In(CallIn(group, operation)));
  return static_cast<uint64_t>(tag);
}

std::vector<Work> StartAll(ProcessGroup& members, std::span<const BatchMessage> messages) {
  Group& group = GroupOf(members, "Batch");
  for (const BatchMessage& message : messages) {
    if (auto ok = Check(group, message); !ok) {
      auto index = std::to_string(&message - messages.data());
      Throw(std::move(ok).error().In("message " + index).In(CallIn(group, "Batch")));
    }
  }
  std::vector<Work> works;
  for (const BatchMessage& message : messages) works.push_back(Unwrap(Start(group, message)));
  return works;
}

}  // namespace comm

ProcessGroup::ProcessGroup(std::unique_ptr<comm::Group> group, comm::GroupTable& table)
    : group_(std::move(group)), table_(table), place_(comm::PlaceIn(group_->identity())) {}
ProcessGroup::~ProcessGroup() = default;

int ProcessGroup::global_rank() const { return comm::IdentityOf(*this).global_rank; }
bool ProcessGroup::is_member() const { return comm::IdentityOf(*this).group_rank >= 0; }
int ProcessGroup::group_rank() const { return comm::IdentityOf(*this).group_rank; }
int ProcessGroup::world_size() const {
  return comm::IdentityOf(*this).group_rank >= 0 ? comm::IdentityOf(*this).world_size() : -1;
}
const std::vector<int>& ProcessGroup::global_ranks() const {
  return comm::IdentityOf(*this).global_ranks;
}
int ProcessGroup::GroupRankOf(GlobalRank rank) const {
  return comm::RankIn(comm::IdentityOf(*this), "GroupRankOf", rank);
}
int ProcessGroup::GlobalRankOf(GroupRank rank) const {
  int found = comm::RankIn(comm::IdentityOf(*this), "GlobalRankOf", rank);
  return global_ranks()[static_cast<size_t>(found)];
}
const std::string& ProcessGroup::name() const { return comm::IdentityOf(*this).name; }
const std::string& ProcessGroup::description() const { return comm::IdentityOf(*this).description; }
const std::string& ProcessGroup::backend() const {
  if (is_member()) return comm::IdentityOf(*this).backend;
  comm::Throw({ErrorCode::kInvalid, "backend of " + comm::PlaceIn(comm::IdentityOf(*this)) +
                                        ": rank " + std::to_string(global_rank()) +
                                        " is no member of it"});
}
GroupState ProcessGroup::state() const { return GroupOf(*this).state(); }
std::string ProcessGroup::broken_reason() const { return GroupOf(*this).broken_reason(); }

Work ProcessGroup::AllReduce(Tensor tensor, ReduceOp op, CallOptions options) {
  return Unwrap(GroupOf(*this).AllReduce(tensor, op, options));
}
Work ProcessGroup::Reduce(Tensor tensor, Peer root, ReduceOp op, CallOptions options) {
  return Unwrap(GroupOf(*this).Reduce(tensor, root, op, options));
}
Work ProcessGroup::Broadcast(Tensor tensor, Peer root, CallOptions options) {
  return Unwrap(GroupOf(*this).Broadcast(tensor, root, options));
}
Work ProcessGroup::AllGather(const TensorList& outputs, ConstTensor input, CallOptions options) {
  return Unwrap(GroupOf(*this).AllGather(outputs, input, options));
}
Work ProcessGroup::AllGatherInto(Tensor output, ConstTensor input, CallOptions options) {
  return Unwrap(GroupOf(*this).AllGatherInto(output, input, options));
}
Work ProcessGroup::Gather(const TensorList& outputs, ConstTensor input, Peer root,
                          CallOptions options) {
  return Unwrap(GroupOf(*this).Gather(outputs, input, root, options));
}
Work ProcessGroup::Scatter(Tensor output, const ConstTensorList& inputs, Peer root,
                           CallOptions options) {
  return Unwrap(GroupOf(*this).Scatter(output, inputs, root, options));
}
Work ProcessGroup::ReduceScatter(Tensor output, const ConstTensorList& inputs, ReduceOp op,
                                 CallOptions options) {
  return Unwrap(GroupOf(*this).ReduceScatter(output, inputs, op, options));
}
Work ProcessGroup::ReduceScatterFrom(Tensor output, ConstTensor input, ReduceOp op,
                                     CallOptions options) {
  return Unwrap(GroupOf(*this).ReduceScatterFrom(output, input, op, options));
}
Work ProcessGroup::AllToAll(const TensorList& outputs, const ConstTensorList& inputs,
                            CallOptions options) {
  return Unwrap(GroupOf(*this).AllToAll(outputs, inputs, options));
}
Work ProcessGroup::AllToAllSingle(Tensor output, ConstTensor input, const Splits& output_splits,
                                  const Splits& input_splits, CallOptions options) {
  return Unwrap(GroupOf(*this).AllToAllSingle(output, input, output_splits, input_splits, options));
}
Work ProcessGroup::Barrier(CallOptions options) { return Unwrap(GroupOf(*this).Barrier(options)); }
Work ProcessGroup::BarrierOn(Device device, CallOptions options) {
  return Unwrap(GroupOf(*this).BarrierOn(device, options));
}
void ProcessGroup::MonitoredBarrier(Timeout timeout, bool wait_all_ranks) {
  Unwrap(GroupOf(*this).MonitoredBarrier(timeout, wait_all_ranks));
}

void ProcessGroup::Send(ConstTensor tensor, Peer destination, int tag, Timeout timeout) {
  Unwrap(GroupOf(*this).Send(tensor, destination, comm::CheckedTag(GroupOf(*this), "Send", tag),
                             timeout));
}
int ProcessGroup::Recv(Tensor tensor, Source source, int tag, Timeout timeout) {
  return Unwrap(
      GroupOf(*this).Recv(tensor, source, comm::CheckedTag(GroupOf(*this), "Recv", tag), timeout));
}
Work ProcessGroup::ISend(ConstTensor tensor, Peer destination, int tag, Timeout timeout) {
  return Unwrap(GroupOf(*this).ISend(tensor, destination,
                                     comm::CheckedTag(GroupOf(*this), "ISend", tag), timeout));
}
Work ProcessGroup::IRecv(Tensor tensor, Source source, int tag, Timeout timeout) {
  return Unwrap(GroupOf(*this).IRecv(tensor, source, comm::CheckedTag(GroupOf(*this), "IRecv", tag),
                                     timeout));
}
std::vector<Work> ProcessGroup::Batch(std::span<const P2POp> operations) {
  std::vector<comm::BatchMessage> messages;
  for (const P2POp& operation : operations) {
    const ConstTensor& tensor = operation.tensor.tensor();
    Tensor memory(const_cast<void*>(tensor.data), tensor.dtype, tensor.count);
    memory.row = tensor.row;
    memory.device = tensor.device;
    messages.push_back({.is_send = operation.kind == P2POp::Kind::kSend,
                        .tensor = memory,
                        .peer = operation.peer,
                        .tag = operation.tag,
                        .can_receive = operation.tensor.can_receive()});
  }
  return comm::StartAll(*this, messages);
}

}  // namespace rankrun

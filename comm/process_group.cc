#include <utility>

#include <rankrun/process_group.h>

#include "comm/arguments.h"
#include "comm/group.h"
#include "comm/process_group_access.h"
#include "comm/throw.h"

namespace rankrun {

using comm::Unwrap;

namespace comm {

Group& GroupOf(ProcessGroup& group) { return *group.group_; }

}  // namespace comm

namespace {

// Tags of programs; the library's own begin at 2^32.
uint64_t CheckedTag(int tag) {
  if (tag < 0) {
    comm::Throw({ErrorCode::kInvalid, "tag is " + std::to_string(tag) + ": want 0 or more"});
  }
  return static_cast<uint64_t>(tag);
}

}  // namespace

ProcessGroup::ProcessGroup(std::unique_ptr<comm::Group> group) : group_(std::move(group)) {}
ProcessGroup::~ProcessGroup() = default;

int ProcessGroup::global_rank() const { return group_->identity().global_rank; }
bool ProcessGroup::is_member() const { return group_->is_member(); }
int ProcessGroup::group_rank() const { return group_->identity().group_rank; }
int ProcessGroup::world_size() const {
  return group_->is_member() ? group_->identity().world_size() : -1;
}
const std::vector<int>& ProcessGroup::global_ranks() const {
  return group_->identity().global_ranks;
}
int ProcessGroup::GroupRankOf(GlobalRank rank) const {
  return Unwrap(comm::GroupRankIn(global_ranks(), rank));
}
int ProcessGroup::GlobalRankOf(GroupRank rank) const {
  const int found = Unwrap(comm::GroupRankIn(global_ranks(), rank));
  return global_ranks()[static_cast<std::size_t>(found)];
}
const std::string& ProcessGroup::name() const { return group_->identity().name; }
const std::string& ProcessGroup::description() const { return group_->identity().description; }
const std::string& ProcessGroup::backend() const { return group_->identity().backend; }
GroupState ProcessGroup::state() const { return group_->state(); }
std::string ProcessGroup::broken_reason() const { return group_->broken_reason(); }

Work ProcessGroup::AllReduce(Tensor tensor, ReduceOp op, CallOptions options) {
  return Unwrap(group_->AllReduce(tensor, op, options));
}
Work ProcessGroup::Reduce(Tensor tensor, Peer root, ReduceOp op, CallOptions options) {
  return Unwrap(group_->Reduce(tensor, root, op, options));
}
Work ProcessGroup::Broadcast(Tensor tensor, Peer root, CallOptions options) {
  return Unwrap(group_->Broadcast(tensor, root, options));
}
Work ProcessGroup::AllGather(std::span<const Tensor> outputs, ConstTensor input,
                             CallOptions options) {
  return Unwrap(group_->AllGather(outputs, input, options));
}
Work ProcessGroup::AllGatherInto(Tensor output, ConstTensor input, CallOptions options) {
  return Unwrap(group_->AllGatherInto(output, input, options));
}
Work ProcessGroup::Gather(std::span<const Tensor> outputs, ConstTensor input, Peer root,
                          CallOptions options) {
  return Unwrap(group_->Gather(outputs, input, root, options));
}
Work ProcessGroup::Scatter(Tensor output, std::span<const ConstTensor> inputs, Peer root,
                           CallOptions options) {
  return Unwrap(group_->Scatter(output, inputs, root, options));
}
Work ProcessGroup::ReduceScatter(Tensor output, std::span<const ConstTensor> inputs, ReduceOp op,
                                 CallOptions options) {
  return Unwrap(group_->ReduceScatter(output, inputs, op, options));
}
Work ProcessGroup::ReduceScatterFrom(Tensor output, ConstTensor input, ReduceOp op,
                                     CallOptions options) {
  return Unwrap(group_->ReduceScatterFrom(output, input, op, options));
}
Work ProcessGroup::AllToAll(std::span<const Tensor> outputs, std::span<const ConstTensor> inputs,
                            CallOptions options) {
  return Unwrap(group_->AllToAll(outputs, inputs, options));
}
Work ProcessGroup::AllToAllSingle(Tensor output, ConstTensor input,
                                  std::span<const std::size_t> output_splits,
                                  std::span<const std::size_t> input_splits, CallOptions options) {
  return Unwrap(group_->AllToAllSingle(output, input, output_splits, input_splits, options));
}
Work ProcessGroup::Barrier(CallOptions options) { return Unwrap(group_->Barrier(options)); }
void ProcessGroup::MonitoredBarrier(Timeout timeout, bool wait_all_ranks) {
  Unwrap(group_->MonitoredBarrier(timeout, wait_all_ranks));
}

void ProcessGroup::Send(ConstTensor tensor, Peer destination, int tag, Timeout timeout) {
  Unwrap(group_->Send(tensor, destination, CheckedTag(tag), timeout));
}
int ProcessGroup::Recv(Tensor tensor, Source source, int tag, Timeout timeout) {
  return Unwrap(group_->Recv(tensor, source, CheckedTag(tag), timeout));
}
Work ProcessGroup::ISend(ConstTensor tensor, Peer destination, int tag) {
  return Unwrap(group_->ISend(tensor, destination, CheckedTag(tag)));
}
Work ProcessGroup::IRecv(Tensor tensor, Source source, int tag) {
  return Unwrap(group_->IRecv(tensor, source, CheckedTag(tag)));
}
std::vector<Work> ProcessGroup::Batch(std::span<const P2POp> operations) {
  std::vector<Work> works;
  for (const P2POp& operation : operations) {
    works.push_back(operation.kind == P2POp::Kind::kSend
                        ? ISend(operation.tensor, operation.peer, operation.tag)
                        : IRecv(operation.tensor, operation.peer, operation.tag));
  }
  return works;
}

}  // namespace rankrun

#pragma once

#include <rankrun/call_options.h>
#include <rankrun/peer.h>
#include <rankrun/reduce_op.h>
#include <rankrun/tensor.h>
#include <rankrun/work.h>

namespace rankrun::internal {

// Collectives of a Group with one option instead of CallOptions: AllReduce(loss, 10s),
// AllReduce(loss, ReduceOp::kMax, kAsync). An input that ends before an asynchronous call is over
// does not compile.
template <typename Group>
class CallForms {
 public:
  template <CallOption Option>
  Work AllReduce(Tensor tensor, Option option) {
    return self().AllReduce(tensor, ReduceOp::kSum, OptionsOf(option));
  }
  template <CallOption Option>
  Work AllReduce(Tensor tensor, ReduceOp op, Option option) {
    return self().AllReduce(tensor, op, OptionsOf(option));
  }
  template <CallOption Option>
  Work Reduce(Tensor tensor, Peer root, Option option) {
    return self().Reduce(tensor, root, ReduceOp::kSum, OptionsOf(option));
  }
  template <CallOption Option>
  Work Reduce(Tensor tensor, Peer root, ReduceOp op, Option option) {
    return self().Reduce(tensor, root, op, OptionsOf(option));
  }
  template <CallOption Option>
  Work Broadcast(Tensor tensor, Peer root, Option option) {
    return self().Broadcast(tensor, root, OptionsOf(option));
  }
  template <CallOption Option>
  Work AllGather(const TensorList& outputs, ConstTensor input, Option option) {
    return self().AllGather(outputs, input, OptionsOf(option));
  }
  template <CallOption Option>
  Work AllGatherInto(Tensor output, ConstTensor input, Option option) {
    return self().AllGatherInto(output, input, OptionsOf(option));
  }
  template <Temporary T>
  Work AllGather(const TensorList& outputs, T&& input, AsyncTag) = delete;
  template <Temporary T>
  Work AllGatherInto(Tensor output, T&& input, AsyncTag) = delete;
  template <CallOption Option>
  Work Gather(const TensorList& outputs, ConstTensor input, Peer root, Option option) {
    return self().Gather(outputs, input, root, OptionsOf(option));
  }
  template <Temporary T>
  Work Gather(const TensorList& outputs, T&& input, Peer root, AsyncTag) = delete;
  template <CallOption Option>
  Work Scatter(Tensor output, const ConstTensorList& inputs, Peer root, Option option) {
    return self().Scatter(output, inputs, root, OptionsOf(option));
  }
  template <CallOption Option>
  Work ReduceScatter(Tensor output, const ConstTensorList& inputs, Option option) {
    return self().ReduceScatter(output, inputs, ReduceOp::kSum, OptionsOf(option));
  }
  template <CallOption Option>
  Work ReduceScatter(Tensor output, const ConstTensorList& inputs, ReduceOp op, Option option) {
    return self().ReduceScatter(output, inputs, op, OptionsOf(option));
  }
  template <CallOption Option>
  Work ReduceScatterFrom(Tensor output, ConstTensor input, Option option) {
    return self().ReduceScatterFrom(output, input, ReduceOp::kSum, OptionsOf(option));
  }
  template <CallOption Option>
  Work ReduceScatterFrom(Tensor output, ConstTensor input, ReduceOp op, Option option) {
    return self().ReduceScatterFrom(output, input, op, OptionsOf(option));
  }
  template <Temporary T>
  Work ReduceScatterFrom(Tensor output, T&& input, AsyncTag) = delete;
  template <Temporary T>
  Work ReduceScatterFrom(Tensor output, T&& input, ReduceOp op, AsyncTag) = delete;
  template <CallOption Option>
  Work AllToAll(const TensorList& outputs, const ConstTensorList& inputs, Option option) {
    return self().AllToAll(outputs, inputs, OptionsOf(option));
  }
  template <CallOption Option>
  Work AllToAllSingle(Tensor output, ConstTensor input, Option option) {
    return self().AllToAllSingle(output, input, {}, {}, OptionsOf(option));
  }
  template <Temporary T>
  Work AllToAllSingle(Tensor output, T&& input, AsyncTag) = delete;
  template <CallOption Option>
  Work Barrier(Option option) {
    return self().Barrier(OptionsOf(option));
  }
  template <CallOption Option>
  Work BarrierOn(Device device, Option option) {
    return self().BarrierOn(device, OptionsOf(option));
  }

 private:
  Group& self() { return static_cast<Group&>(*this); }
};

}  // namespace rankrun::internal

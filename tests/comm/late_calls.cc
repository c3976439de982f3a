#include "tests/comm/late_calls.h"

#include <vector>

namespace rankrun::comm {
namespace {

using Results = LateCall::Results;
using Floats = std::vector<float>;

size_t All(const ProcessGroup& group, size_t count) {
  return count * static_cast<size_t>(group.world_size());
}

template <typename T>
std::vector<T> Parts(Floats& data, size_t count) {
  std::vector<T> parts;
  for (size_t at = 0; at < data.size(); at += count) {
    parts.emplace_back(data.data() + at, DType::kFloat32, count);
  }
  return parts;
}

void Gathers(ProcessGroup& group, size_t count, GlobalRank root, const CallOptions& options) {
  Floats input(count);
  bool is_root = group.global_rank() == root.value;
  Floats output(is_root ? All(group, count) : 0);
  group.Gather(Parts<Tensor>(output, count), input, root, options);
}

void Scatters(ProcessGroup& group, size_t count, GlobalRank root, const CallOptions& options) {
  Floats output(count);
  bool is_root = group.global_rank() == root.value;
  Floats input(is_root ? All(group, count) : 0);
  group.Scatter(output, Parts<ConstTensor>(input, count), root, options);
}

}  // namespace

const std::map<std::string, LateCall>& LateCalls() {
  using Group = ProcessGroup;
  using Options = CallOptions;
  static const std::map<std::string, LateCall> kCalls{
      {"AllReduce",
       {[](Group& group, size_t count, GlobalRank, const Options& options) {
          Floats data(count);
          group.AllReduce(data, ReduceOp::kSum, options);
        },
        Results::kAll}},
      {"AllGather",
       {[](Group& group, size_t count, GlobalRank, const Options& options) {
          Floats input(count), output(All(group, count));
          group.AllGatherInto(output, input, options);
        },
        Results::kAll}},
      {"ReduceScatter",
       {[](Group& group, size_t count, GlobalRank, const Options& options) {
          Floats input(All(group, count)), output(count);
          group.ReduceScatterFrom(output, input, ReduceOp::kSum, options);
        },
        Results::kAll}},
      {"AllToAll",
       {[](Group& group, size_t count, GlobalRank, const Options& options) {
          Floats input(All(group, count)), output(input.size());
          group.AllToAllSingle(output, input, {}, {}, options);
        },
        Results::kAll}},
      {"Barrier",
       {[](Group& group, size_t, GlobalRank, const Options& options) { group.Barrier(options); },
        Results::kAll}},
      {"Reduce",
       {[](Group& group, size_t count, GlobalRank root, const Options& options) {
          Floats data(count);
          group.Reduce(data, root, ReduceOp::kSum, options);
        },
        Results::kRoot}},
      {"Broadcast",
       {[](Group& group, size_t count, GlobalRank root, const Options& options) {
          Floats data(count);
          group.Broadcast(data, root, options);
        },
        Results::kAllButRoot}},
      {"Gather", {Gathers, Results::kRoot}},
      {"Scatter", {Scatters, Results::kAllButRoot}},
  };
  return kCalls;
}

std::string OutcomeOf(const std::function<void()>& call) {
  try {
    call();
    return "success";
  } catch (const DistError& error) {
    return error.what();
  }
}

}  // namespace rankrun::comm

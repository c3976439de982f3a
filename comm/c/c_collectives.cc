#include <rankrun/c/collectives.h>
#include <rankrun/gpu.h>

#include "comm/c/c_guard.h"

namespace {

using rankrun::GlobalRank;
using rankrun::comm::CallOf;
using rankrun::comm::Clear;
using rankrun::comm::GroupOf;
using rankrun::comm::Guarded;
using rankrun::comm::GuardedOr;
using rankrun::comm::Hand;
using rankrun::comm::InputsOf;
using rankrun::comm::ListOf;
using rankrun::comm::NotNull;
using rankrun::comm::OpOf;
using rankrun::comm::TensorOf;
using rankrun::comm::TensorsOf;
using rankrun::comm::ThrowInvalid;
using rankrun::comm::TimeoutOf;

}  // namespace

struct rankrun_registered_memory {
  rankrun::RegisteredMemory memory;
};

extern "C" {

rankrun_status rankrun_all_reduce(rankrun_group* group, const rankrun_tensor* tensor,
                                  const rankrun_reduce_op* op, int64_t timeout_ms,
                                  rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    Hand(GroupOf(group).AllReduce(TensorOf(tensor, "tensor"), OpOf(op), call), work);
  });
}

rankrun_status rankrun_reduce(rankrun_group* group, const rankrun_tensor* tensor, int root,
                              const rankrun_reduce_op* op, int64_t timeout_ms,
                              rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    auto data = TensorOf(tensor, "tensor");
    Hand(GroupOf(group).Reduce(data, GlobalRank{root}, OpOf(op), call), work);
  });
}

rankrun_status rankrun_broadcast(rankrun_group* group, const rankrun_tensor* tensor, int root,
                                 int64_t timeout_ms, rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    Hand(GroupOf(group).Broadcast(TensorOf(tensor, "tensor"), GlobalRank{root}, call), work);
  });
}

rankrun_status rankrun_all_gather(rankrun_group* group, const rankrun_tensor* outputs,
                                  size_t outputs_count, const rankrun_tensor* input,
                                  int64_t timeout_ms, rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    auto places = TensorsOf(outputs, outputs_count, "outputs");
    Hand(GroupOf(group).AllGather(places, TensorOf(input, "input"), call), work);
  });
}

rankrun_status rankrun_all_gather_into(rankrun_group* group, const rankrun_tensor* output,
                                       const rankrun_tensor* input, int64_t timeout_ms,
                                       rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    auto place = TensorOf(output, "output");
    Hand(GroupOf(group).AllGatherInto(place, TensorOf(input, "input"), call), work);
  });
}

rankrun_status rankrun_gather(rankrun_group* group, const rankrun_tensor* outputs,
                              size_t outputs_count, const rankrun_tensor* input, int root,
                              int64_t timeout_ms, rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    auto places = TensorsOf(outputs, outputs_count, "outputs");
    Hand(GroupOf(group).Gather(places, TensorOf(input, "input"), GlobalRank{root}, call), work);
  });
}

rankrun_status rankrun_scatter(rankrun_group* group, const rankrun_tensor* output,
                               const rankrun_tensor* inputs, size_t inputs_count, int root,
                               int64_t timeout_ms, rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    auto parts = InputsOf(inputs, inputs_count, "inputs");
    Hand(GroupOf(group).Scatter(TensorOf(output, "output"), parts, GlobalRank{root}, call), work);
  });
}

rankrun_status rankrun_reduce_scatter(rankrun_group* group, const rankrun_tensor* output,
                                      const rankrun_tensor* inputs, size_t inputs_count,
                                      const rankrun_reduce_op* op, int64_t timeout_ms,
                                      rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    auto parts = InputsOf(inputs, inputs_count, "inputs");
    Hand(GroupOf(group).ReduceScatter(TensorOf(output, "output"), parts, OpOf(op), call), work);
  });
}

rankrun_status rankrun_reduce_scatter_from(rankrun_group* group, const rankrun_tensor* output,
                                           const rankrun_tensor* input, const rankrun_reduce_op* op,
                                           int64_t timeout_ms, rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    auto place = TensorOf(output, "output");
    auto parts = TensorOf(input, "input");
    Hand(GroupOf(group).ReduceScatterFrom(place, parts, OpOf(op), call), work);
  });
}

rankrun_status rankrun_all_to_all(rankrun_group* group, const rankrun_tensor* outputs,
                                  size_t outputs_count, const rankrun_tensor* inputs,
                                  size_t inputs_count, int64_t timeout_ms, rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    auto places = TensorsOf(outputs, outputs_count, "outputs");
    Hand(GroupOf(group).AllToAll(places, InputsOf(inputs, inputs_count, "inputs"), call), work);
  });
}

rankrun_status rankrun_all_to_all_single(rankrun_group* group, const rankrun_tensor* output,
                                         const rankrun_tensor* input, const size_t* output_splits,
                                         size_t output_splits_count, const size_t* input_splits,
                                         size_t input_splits_count, int64_t timeout_ms,
                                         rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    auto outputs = ListOf(output_splits, output_splits_count, "output_splits");
    auto inputs = ListOf(input_splits, input_splits_count, "input_splits");
    Hand(GroupOf(group).AllToAllSingle(TensorOf(output, "output"), TensorOf(input, "input"),
                                       outputs, inputs, call),
         work);
  });
}

rankrun_status rankrun_barrier(rankrun_group* group, int64_t timeout_ms, rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    Hand(GroupOf(group).Barrier(call), work);
  });
}

rankrun_status rankrun_barrier_on(rankrun_group* group, int32_t device_index, int64_t timeout_ms,
                                  rankrun_work** work) {
  return Guarded([=] {
    auto call = CallOf(timeout_ms, work);
    const rankrun::Device device{.type = rankrun::DeviceType::kCuda, .index = device_index};
    Hand(GroupOf(group).BarrierOn(device, call), work);
  });
}

rankrun_status rankrun_monitored_barrier(rankrun_group* group, int wait_all_ranks,
                                         int64_t timeout_ms) {
  return Guarded(
      [=] { GroupOf(group).MonitoredBarrier(TimeoutOf(timeout_ms), wait_all_ranks != 0); });
}

rankrun_registered_memory* rankrun_register_memory(rankrun_group* group,
                                                   const rankrun_tensor* memory) {
  return GuardedOr<rankrun_registered_memory*>(nullptr, [=] {
    auto tensor = TensorOf(memory, "memory");
    return new rankrun_registered_memory{rankrun::RegisteredMemory(GroupOf(group), tensor)};
  });
}

void rankrun_registered_memory_release(rankrun_registered_memory* memory) { delete memory; }

void* rankrun_set_stream(void* stream) { return rankrun::SetStream(stream); }

rankrun_status rankrun_work_wait(const rankrun_work* work) {
  return Guarded([=] { NotNull(work, "work").work.Wait(); });
}

rankrun_status rankrun_work_wait_for(const rankrun_work* work, int64_t limit_ms, int* done) {
  return Guarded([=] {
    int& answer = NotNull(done, "done");
    auto limit = std::chrono::milliseconds(limit_ms);
    answer = NotNull(work, "work").work.WaitFor(limit) ? 1 : 0;
  });
}

int rankrun_work_test(const rankrun_work* work) {
  return GuardedOr(0, [=] { return NotNull(work, "work").work.IsCompleted() ? 1 : 0; });
}

rankrun_status rankrun_work_then(const rankrun_work* work, void (*done)(void* context),
                                 void* context) {
  return Guarded([=] {
    if (done == nullptr) ThrowInvalid("done is NULL");
    NotNull(work, "work").work.Then([done, context] { done(context); });
  });
}

rankrun_status rankrun_work_coalesce(const rankrun_work* const* works, size_t count,
                                     rankrun_work** all) {
  return Guarded([=] {
    Clear(all, "all");
    std::vector<rankrun::Work> parts;
    for (const rankrun_work* work : ListOf(works, count, "works")) {
      parts.push_back(NotNull(work, "one of works").work);
    }
    Hand(rankrun::Coalesce(parts), all);
  });
}

int rankrun_work_source(const rankrun_work* work) {
  return GuardedOr(-1, [=] { return NotNull(work, "work").work.source_global_rank(); });
}

uint64_t rankrun_work_sequence(const rankrun_work* work) {
  return GuardedOr(uint64_t{0}, [=] { return NotNull(work, "work").work.sequence(); });
}

void rankrun_work_release(rankrun_work* work) { delete work; }

}  // extern "C"

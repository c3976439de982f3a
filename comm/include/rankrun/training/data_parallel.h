#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <rankrun/call_options.h>
#include <rankrun/export.h>
#include <rankrun/join.h>
#include <rankrun/process_group.h>
#include <rankrun/tensor.h>
#include <rankrun/training/data_parallel_log.h>

// Data-parallel training for programs that compute their gradients themselves.
// Source: torch.nn.parallel.DistributedDataParallel.
namespace rankrun {

namespace comm {
class DataParallelState;
}

// Parameter of a model with its gradient, which has the same type and count. In CPU memory.
struct Parameter {
  std::string name;
  Tensor value;
  Tensor gradient;
};

// State of a model beside its parameters, such as running means. In CPU memory.
struct Buffer {
  std::string name;
  Tensor value;
};

// Equal on all ranks, except for `module_name` and `timeout`.
struct DataParallelOptions {
  // Copied from rank 0 of the group at the begin of steps; in a Join, from the largest rank that
  // has inputs. Not in the step after one in NoSync.
  std::vector<Buffer> buffers = {};
  // A bucket is closed when it has this size; the first one of each type earlier, so that
  // communication starts early.
  size_t bucket_cap_bytes = size_t{25} << 20;
  size_t first_bucket_cap_bytes = size_t{1} << 20;
  // Gradients that a rank has not marked ready by FinishStep count as zero. A gradient that
  // no rank has marked stays as it is. Costs one more all-reduce per step.
  bool find_unused_parameters = false;
  std::string module_name = "model";  // for the log
  Timeout timeout = {};               // of each collective; no value: the group's
};

// Averages the gradients of all ranks while the backward pass goes on:
//
//   DataParallel model(world, {{"weight", weight, weight_gradient}, {"bias", ...}});
//   for (const Batch& batch : own_batches) {
//     model.BeginStep();
//     Forward(batch);
//     model.BeginBackward();
//     ...                  // computes the gradient of the bias
//     model.Ready(1);
//     ...
//     model.Ready(0);
//     model.FinishStep();  // both gradients are averages now
//     Update(weights);
//   }
//
// Gradients are copied to buckets, in the reverse order of the parameters. A bucket is
// reduced by AllReduce (kAvg, kAsync) once all its gradients are ready, and all buckets
// before it have been started. All ranks make the same steps; with a Join (join.h), ranks
// may make different numbers of steps. Its argument "divide_by_initial_world_size" (bool,
// default true) says whether averages also count the ranks that have no more inputs; at its
// end all ranks get the parameters and buffers of the last one to have inputs.
//
// Errors: those of the group's collectives. DistError for wrong use.
// Thread: one at a time. Lifetime: the group and the memory of all tensors outlive it. During a
// step other threads may use the group only as all ranks do in the same order.
class RANKRUN_API DataParallel : public Joinable {
 public:
  // All ranks of the group call it. Copies the parameters and buffers of rank 0 to all.
  // Errors: DistMismatchError on all ranks, with the first difference between their
  // parameters, buffers or options; DistError for a bad argument, on all ranks.
  DataParallel(ProcessGroup& group, std::vector<Parameter> parameters,
               DataParallelOptions options = {});
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;
  // Within a step, as after an exception, the group breaks on all ranks, because the others
  // would wait for this one.
  ~DataParallel() override;

  // Begins a step, before its forward pass.
  void BeginStep();
  // Begins the backward pass, for the log only. Without it, the first Ready does.
  void BeginBackward();
  // Announces that the gradient of that parameter is complete. The program does not write to
  // it from now on until FinishStep returns. Throws DistError for a second call in a step.
  void Ready(size_t index);
  // Waits for the averages and copies them to the gradients. Throws DistError if a gradient
  // is not ready, unless find_unused_parameters is set; the group is then broken on all ranks.
  void FinishStep();

  // Scope in which steps add up gradients on each rank without communication. The first step
  // after it averages the sums. All ranks have the same ones. Does not outlive the DataParallel.
  class RANKRUN_API NoSync {
   public:
    explicit NoSync(DataParallel& model);
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;
    ~NoSync();

   private:
    DataParallel& model_;
  };

  DataParallelLog log() const;

  std::unique_ptr<JoinHook> MakeJoinHook(const JoinArguments& arguments) override;
  ProcessGroup& join_process_group() const override;

 private:
  const std::unique_ptr<comm::DataParallelState> state_;
};

}  // namespace rankrun

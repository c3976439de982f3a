#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rankrun/training/data_parallel.h>

#include "comm/cpp/gradient_reducer.h"
#include "comm/training/step_statistics.h"

namespace rankrun::comm {

// Implementation of DataParallel, which describes the functions.
// Thread: one at a time.
class DataParallelState {
 public:
  DataParallelState(ProcessGroup& group, std::vector<Parameter> parameters,
                    DataParallelOptions options);
  ~DataParallelState();

  // `joins`: in an enabled Join, whose other ranks may have no more inputs.
  void CheckNoStep() const;
  void LogSample();
  void BeginStep(bool joins);
  void BeginBackward();
  void Ready(size_t index);
  void FinishStep();

  // Takes part in a step of the other ranks.
  void ShadowStep();
  // Copies parameters and buffers of the last joiner with the largest rank to all ranks.
  void CopyFromLastJoiner(bool is_last_joiner);
  void SetDividesByAll(bool all) { divides_by_all_ = all; }

  int no_sync_scopes = 0;
  ProcessGroup& group() const { return group_; }
  const DataParallelLog& log() const { return log_; }

 private:
  [[noreturn]] void Fail(const char* call, const std::string& message) const;
  [[noreturn]] void FailMissing(const std::vector<size_t>& missing);
  void EndGroup(const std::string& reason) const noexcept;
  void InitLog();
  // Returns the largest group rank of those that are candidates.
  int LargestRank(bool is_candidate);
  void BroadcastModel(int root);
  void BroadcastBuffers(int root);
  void StartFlag(bool syncs);
  void ReduceGradients();
  ReduceOp::Kind Operation(bool joins) const;

  ProcessGroup& group_;
  const std::vector<Parameter> parameters_;
  const DataParallelOptions options_;
  GradientReducer reducer_;
  std::vector<uint8_t> used_;  // by parameter, since the last step with communication

  bool divides_by_all_ = true;  // in a Join
  bool is_in_step_ = false;
  bool is_in_backward_ = false;
  bool syncs_ = true;              // this step
  bool sync_buffers_next_ = true;  // because the step before has had communication
  // In a Join: the ranks that make this step with communication.
  std::shared_ptr<int32_t> active_;
  std::optional<Work> flag_;

  int64_t steps_ = 0;
  StepTimes times_ = {};
  size_t unused_bytes_ = 0;
  bool has_times_ = false;  // of a step with communication that is in no sample
  StepStatistics statistics_;
  DataParallelLog log_;
};

}  // namespace rankrun::comm

#include "comm/cpp/data_parallel_state.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include <rankrun/diagnosis/debug.h>
#include <rankrun/dist_error.h>

#include "base/log.h"
#include "comm/core/part_of.h"
#include "comm/core/throw.h"
#include "comm/cpp/model_agreement.h"
#include "comm/group/group.h"
#include "comm/group/process_group_access.h"
#include "comm/training/model_text.h"

namespace rankrun::comm {
namespace {

TimePoint Now() { return MonotonicClock().Now(); }

// Checks the model before anything depends on it.
std::vector<Parameter> Agreed(ProcessGroup& group, std::vector<Parameter> parameters,
                              const DataParallelOptions& options) {
  const std::string call = CallIn(GroupOf(group), "DataParallel");
  if (!group.is_member()) {
    Throw({ErrorCode::kInvalid, call + ": this rank is no member of the group"});
  }
  auto ok = AgreeOnModel(group, ModelText(parameters, options), options.timeout);
  if (!ok) Throw(std::move(ok).error().In(call));
  return parameters;
}

std::string ValueOf(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? "N/A" : value;
}

// Returns PyTorch's name of a type where it differs.
std::string LoggedName(DType dtype) {
  if (dtype == DType::kFloat32) return "float";
  if (dtype == DType::kFloat64) return "double";
  return NameOf(dtype);
}

std::string LoggedName(DebugLevel level) {
  if (level == DebugLevel::kOff) return "OFF";
  return level == DebugLevel::kInfo ? "INFO" : "DETAIL";
}

size_t BytesOf(const Tensor& tensor) { return tensor.count * SizeOf(tensor.dtype); }

}  // namespace

DataParallelState::DataParallelState(ProcessGroup& group, std::vector<Parameter> parameters,
                                     DataParallelOptions options)
    : group_(group),
      parameters_(Agreed(group, std::move(parameters), options)),
      options_(std::move(options)),
      reducer_(group, parameters_, options_),
      used_(parameters_.size(), 0) {
  BroadcastModel(0);
  InitLog();
  if (GetDebugLevel() != DebugLevel::kOff) LogInfo(DescribeModel(log_));
}

DataParallelState::~DataParallelState() {
  if (is_in_step_ && syncs_) EndGroup("the end of a DataParallel before FinishStep");
}

void DataParallelState::InitLog() {
  log_.broadcast_buffers = !options_.buffers.empty();
  log_.bucket_cap_bytes = options_.bucket_cap_bytes;
  log_.find_unused_parameters = options_.find_unused_parameters;
  log_.num_parameter_tensors = parameters_.size();
  log_.rank = group_.group_rank();
  log_.world_size = group_.world_size();
  log_.backend_name = group_.backend();
  for (const BucketLayout& bucket : reducer_.buckets()) {
    log_.bucket_sizes.push_back(bucket.bytes());
  }
  std::set<std::string> dtypes;
  for (const Parameter& parameter : parameters_) {
    log_.total_parameter_size_bytes += BytesOf(parameter.value);
    dtypes.insert(LoggedName(parameter.value.dtype));
  }
  for (const std::string& dtype : dtypes) log_.dtypes += (log_.dtypes.empty() ? "" : ", ") + dtype;
  log_.gloo_socket_ifname = ValueOf("GLOO_SOCKET_IFNAME");
  log_.master_addr = ValueOf("MASTER_ADDR");
  log_.master_port = ValueOf("MASTER_PORT");
  log_.module_name = options_.module_name;
  log_.torch_distributed_debug = LoggedName(GetDebugLevel());
}

void DataParallelState::Fail(const char* call, const std::string& message) const {
  Throw({ErrorCode::kInvalid, CallIn(GroupOf(group_), call) + ": " + message});
}

// Ends the waits of the other ranks for this one.
void DataParallelState::EndGroup(const std::string& reason) const noexcept {
  try {
    Group& group = GroupOf(group_);
    if (group.state() != GroupState::kBroken) group.End("ended the group: " + reason);
  } catch (const DistError&) {
    // The group is destroyed: no rank waits in it.
  }
}

void DataParallelState::BroadcastModel(int root) {
  const PartOf part_of(ProgramCall::kDataParallel);
  for (const Parameter& parameter : parameters_) {
    group_.Broadcast(parameter.value, GroupRank{root}, options_.timeout);
  }
  BroadcastBuffers(root);
}

void DataParallelState::BroadcastBuffers(int root) {
  const PartOf part_of(ProgramCall::kDataParallel);
  for (const Buffer& buffer : options_.buffers) {
    group_.Broadcast(buffer.value, GroupRank{root}, options_.timeout);
  }
}

int DataParallelState::LargestRank(bool is_candidate) {
  const PartOf part_of(ProgramCall::kDataParallel);
  int32_t rank = is_candidate ? group_.group_rank() : -1;
  group_.AllReduce(Tensor(&rank, DType::kInt32, 1), ReduceOp::kMax, options_.timeout);
  return rank;
}

ReduceOp::Kind DataParallelState::Operation(bool joins) const {
  return joins && !divides_by_all_ ? ReduceOp::kSum : ReduceOp::kAvg;
}

void DataParallelState::CheckNoStep() const {
  if (!is_in_step_) return;
  Fail("DataParallel::BeginStep", "the step before has not ended: want FinishStep first");
}

void DataParallelState::LogSample() {
  if (!has_times_ || !TakesSample(steps_)) return;
  has_times_ = false;
  statistics_.Add(steps_, times_, unused_bytes_, log_);
  if (GetDebugLevel() == DebugLevel::kDetail) LogInfo(DescribeTimes(log_));
}

void DataParallelState::BeginStep(bool joins) {
  syncs_ = no_sync_scopes == 0;
  if (sync_buffers_next_ && !options_.buffers.empty()) {
    BroadcastBuffers(joins ? LargestRank(true) : 0);
  }
  if (joins) StartFlag(syncs_);
  sync_buffers_next_ = syncs_;
  reducer_.Begin(Operation(joins));
  is_in_step_ = true;
  is_in_backward_ = false;
  times_ = {.forward_begin = Now()};
}

// Tells ranks without inputs whether this step reduces gradients.
void DataParallelState::StartFlag(bool syncs) {
  active_ = std::make_shared<int32_t>(syncs ? 1 : 0);
  CallOptions options = kAsync;
  options.timeout = options_.timeout;
  const PartOf part_of(ProgramCall::kDataParallel);
  flag_ = group_.AllReduce(Tensor(active_.get(), DType::kInt32, 1), ReduceOp::kSum, options);
  flag_->Then([active = active_] {});  // keeps the memory
}

void DataParallelState::BeginBackward() {
  if (!is_in_step_) Fail("DataParallel::BeginBackward", "there is no step: want BeginStep first");
  if (std::exchange(is_in_backward_, true)) return;
  times_.backward_begin = Now();
}

void DataParallelState::Ready(size_t index) {
  constexpr const char* kCall = "DataParallel::Ready";
  if (!is_in_step_) Fail(kCall, "there is no step: want BeginStep first");
  if (index >= parameters_.size()) {
    Fail(kCall, "index is " + std::to_string(index) + ": want 0 to " +
                    std::to_string(parameters_.size() - 1));
  }
  if (!reducer_.Mark(index)) {
    Fail(kCall, "gradient " + std::to_string(index) + " (\"" + parameters_[index].name +
                    "\") is ready already: want one call in each step");
  }
  BeginBackward();
  used_[index] = 1;
  if (!syncs_) return;
  reducer_.Copy(index);
  reducer_.StartComplete();
}

void DataParallelState::FinishStep() {
  if (!is_in_step_) Fail("DataParallel::FinishStep", "there is no step: want BeginStep first");
  BeginBackward();
  is_in_step_ = false;  // an error ends the step, and the group
  times_.backward_end = Now();
  if (syncs_) ReduceGradients();
  if (auto flag = std::exchange(flag_, std::nullopt)) flag->Wait();
  steps_ += 1;
}

void DataParallelState::ReduceGradients() {
  const std::vector<size_t> missing = reducer_.Missing();
  if (!missing.empty() && !options_.find_unused_parameters) FailMissing(missing);
  unused_bytes_ = 0;
  for (size_t i : missing) {
    unused_bytes_ += BytesOf(parameters_[i].value);
    reducer_.Mark(i);
    // A NoSync step may have used it.
    used_[i] != 0 ? reducer_.Copy(i) : reducer_.CopyZeros(i);
  }
  reducer_.StartComplete();
  std::optional<int> divisor;
  if (flag_ && !divides_by_all_) {
    flag_->Wait();
    divisor = *active_;
  }
  reducer_.Finish(options_.find_unused_parameters ? &used_ : nullptr, divisor);
  reducer_.NoteTimes(times_);
  has_times_ = true;
  std::fill(used_.begin(), used_.end(), uint8_t{0});
}

void DataParallelState::FailMissing(const std::vector<size_t>& missing) {
  std::string message = std::to_string(missing.size()) + " of " +
                        std::to_string(parameters_.size()) +
                        " gradients are not ready: want Ready for each one in each step, or "
                        "find_unused_parameters on all ranks; ";
  std::string rank = std::to_string(group_.global_rank());
  if (GetDebugLevel() == DebugLevel::kOff) {
    message += "RANKRUN_DEBUG=INFO shows their names";
  } else {
    std::string names, indices;
    for (size_t i : missing) {
      names += (names.empty() ? "" : ", ") + parameters_[i].name;
      indices += (indices.empty() ? "" : ", ") + std::to_string(i);
    }
    message += "Parameters which did not receive grad for rank " + rank + ": " + names +
               "; Parameter indices which did not receive grad for rank " + rank + ": " + indices;
  }
  EndGroup("FinishStep with gradients that are not ready on rank " + rank);
  Fail("DataParallel::FinishStep", message);
}

void DataParallelState::ShadowStep() {
  if (sync_buffers_next_ && !options_.buffers.empty()) BroadcastBuffers(LargestRank(false));
  StartFlag(false);
  std::exchange(flag_, std::nullopt)->Wait();
  sync_buffers_next_ = *active_ != 0;
  if (*active_ == 0) return;
  reducer_.MakeZeroStep(Operation(true), options_.find_unused_parameters);
  std::fill(used_.begin(), used_.end(), uint8_t{0});
}

void DataParallelState::CopyFromLastJoiner(bool is_last_joiner) {
  BroadcastModel(LargestRank(is_last_joiner));
}

}  // namespace rankrun::comm

#include "comm/training/step_statistics.h"

#include <algorithm>
#include <utility>

namespace rankrun::comm {
namespace {

constexpr int64_t kFirstSamples = 10;
constexpr int64_t kSampleEvery = 100;

int64_t Nanoseconds(TimePoint begin, TimePoint end) {
  if (end < begin) return 0;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
}

std::string Joined(const std::vector<size_t>& sizes) {
  std::string text;
  for (size_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return text;
}

}  // namespace

bool TakesSample(int64_t iteration) {
  return iteration > 0 && (iteration <= kFirstSamples || iteration % kSampleEvery == 0);
}

void StepStatistics::Add(int64_t iteration, const StepTimes& times, size_t unused_bytes,
                         DataParallelLog& log) {
  log.iteration = iteration;
  log.unused_parameter_size = unused_bytes;
  samples_ += 1;
  auto add = [&](int64_t& mean, TimePoint begin, TimePoint end) {
    mean += (Nanoseconds(begin, end) - mean) / samples_;
  };
  add(log.avg_forward_compute_time, times.forward_begin, times.backward_begin);
  add(log.avg_backward_compute_time, times.backward_begin, times.backward_end);
  add(log.avg_backward_comm_time, times.comm_begin, times.comm_end);
  add(log.avg_backward_compute_comm_overlap_time, times.comm_begin,
      std::min(times.backward_end, times.comm_end));
}

std::string DescribeModel(const DataParallelLog& log) {
  const std::pair<const char*, std::string> fields[] = {
      {"broadcast_buffers", std::to_string(log.broadcast_buffers)},
      {"bucket_cap_bytes", std::to_string(log.bucket_cap_bytes)},
      {"find_unused_parameters", std::to_string(log.find_unused_parameters)},
      {"iteration", std::to_string(log.iteration)},
      {"num_parameter_tensors", std::to_string(log.num_parameter_tensors)},
      {"rank", std::to_string(log.rank)},
      {"total_parameter_size_bytes", std::to_string(log.total_parameter_size_bytes)},
      {"world_size", std::to_string(log.world_size)},
      {"backend_name", log.backend_name},
      {"bucket_sizes", Joined(log.bucket_sizes)},
      {"dtypes", log.dtypes},
      {"gloo_socket_ifname", log.gloo_socket_ifname},
      {"master_addr", log.master_addr},
      {"master_port", log.master_port},
      {"module_name", log.module_name},
      {"torch_distributed_debug", log.torch_distributed_debug},
  };
  std::string text = "[Rank " + std::to_string(log.rank) + "]: DDP Initialized with:";
  for (const auto& [name, value] : fields) text += "\n" + std::string(name) + ": " + value;
  return text;
}

std::string DescribeTimes(const DataParallelLog& log) {
  return "[Rank " + std::to_string(log.rank) + " / " + std::to_string(log.world_size) +
         "] [before iteration " + std::to_string(log.iteration) + "] Training " + log.module_name +
         " unused_parameter_size=" + std::to_string(log.unused_parameter_size) +
         "\n Avg forward compute time: " + std::to_string(log.avg_forward_compute_time) +
         "\n Avg backward compute time: " + std::to_string(log.avg_backward_compute_time) +
         "\n Avg backward comm. time: " + std::to_string(log.avg_backward_comm_time) +
         "\n Avg backward comm/comp overlap time: " +
         std::to_string(log.avg_backward_compute_comm_overlap_time);
}

}  // namespace rankrun::comm

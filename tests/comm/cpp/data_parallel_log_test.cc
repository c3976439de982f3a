// The facts and times that a DataParallel logs.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include <rankrun/diagnosis/debug.h>
#include <rankrun/training/data_parallel.h>

#include "base/log.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Two layers without bias, 10 to 10 and 10 to 1.
struct Layers {
  std::vector<float> first = std::vector<float>(100), second = std::vector<float>(10);
  std::vector<float> first_gradient = first, second_gradient = second;

  std::vector<Parameter> parameters() {
    return {{"a.weight", first, first_gradient}, {"b.weight", second, second_gradient}};
  }
};

void Train(DataParallel& model, int steps) {
  for (int step = 0; step < steps; ++step) {
    model.BeginStep();
    model.BeginBackward();
    model.Ready(1);
    model.Ready(0);
    model.FinishStep();
  }
}

// Returns the log of each of two ranks that make `steps` steps at a debug level.
std::vector<std::string> LogsAt(DebugLevel level, int steps) {
  return InWorld(2, "shm", [&](ProcessGroup& world) {
    unsetenv("GLOO_SOCKET_IFNAME");
    SetDebugLevel(level);
    std::string text;
    SetLogSink([&](std::string_view line) {
      bool is_ours = line.find("DDP Initialized") != std::string_view::npos ||
                     line.find("Training ") != std::string_view::npos;
      if (is_ours) text += line;
    });
    Layers layers;
    DataParallel model(world, layers.parameters(), {.module_name = "Layers"});
    Train(model, steps);
    SetDebugLevel(DebugLevel::kOff);
    SetLogSink({});
    return text + "port " + std::getenv("MASTER_PORT");
  });
}

// Returns the text of vector DDP1.
std::string Ddp1(int rank, const std::string& level, const std::string& port) {
  return "rankrun: info: [Rank " + std::to_string(rank) +
         "]: DDP Initialized with:\n"
         "broadcast_buffers: 0\n"
         "bucket_cap_bytes: 26214400\n"
         "find_unused_parameters: 0\n"
         "iteration: 0\n"
         "num_parameter_tensors: 2\n"
         "rank: " +
         std::to_string(rank) +
         "\n"
         "total_parameter_size_bytes: 440\n"
         "world_size: 2\n"
         "backend_name: shm\n"
         "bucket_sizes: 440\n"
         "dtypes: float\n"
         "gloo_socket_ifname: N/A\n"
         "master_addr: 127.0.0.1\n"
         "master_port: " +
         port +
         "\n"
         "module_name: Layers\n"
         "torch_distributed_debug: " +
         level + "\n";
}

TEST(DataParallelLogTest, DDP1_EachRankLogsItsFieldsAtInfo) {
  auto texts = LogsAt(DebugLevel::kInfo, 2);
  for (int rank = 0; rank < 2; ++rank) {
    const std::string& text = texts[static_cast<size_t>(rank)];
    std::string port = text.substr(text.rfind(' ') + 1);
    EXPECT_EQ(text, Ddp1(rank, "INFO", port) + "port " + port);
  }
}

TEST(DataParallelLogTest, NothingIsLoggedWithoutADebugLevel) {
  for (const std::string& text : LogsAt(DebugLevel::kOff, 2)) {
    EXPECT_THAT(text, testing::StartsWith("port "));
  }
}

TEST(DataParallelLogTest, AtDetailTheTimesOfSampledStepsAreLogged) {
  auto texts = LogsAt(DebugLevel::kDetail, 202);
  for (int rank = 0; rank < 2; ++rank) {
    const std::string& text = texts[static_cast<size_t>(rank)];
    EXPECT_THAT(text, HasSubstr("torch_distributed_debug: DETAIL\n"));
    for (int step : {1, 2, 10, 100, 200}) {
      EXPECT_THAT(text, HasSubstr("info: [Rank " + std::to_string(rank) +
                                  " / 2] [before iteration " + std::to_string(step) +
                                  "] Training Layers unused_parameter_size=0\n"
                                  " Avg forward compute time: "));
    }
    EXPECT_THAT(text, Not(HasSubstr("before iteration 11]")));
    EXPECT_THAT(text, Not(HasSubstr("before iteration 0]")));
  }
}

TEST(DataParallelLogTest, AProgramGetsTheSameFacts) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    Layers layers;
    std::vector<double> mean{0};
    DataParallel model(world, layers.parameters(),
                       {.buffers = {{"mean", mean}},
                        .bucket_cap_bytes = 100,
                        .first_bucket_cap_bytes = 10,
                        .find_unused_parameters = true});
    DataParallelLog before = model.log();
    for (int step = 0; step < 3; ++step) {
      model.BeginStep();
      model.Ready(1);
      model.FinishStep();
    }
    DataParallelLog log = model.log();
    bool is_right = before.iteration == 0 && before.avg_backward_comm_time == 0 &&
                    log.broadcast_buffers && log.bucket_cap_bytes == 100 &&
                    log.find_unused_parameters && log.iteration == 2 &&
                    log.num_parameter_tensors == 2 && log.rank == world.group_rank() &&
                    log.total_parameter_size_bytes == 440 && log.world_size == 2 &&
                    log.backend_name == "shm" && log.bucket_sizes == std::vector<size_t>{40, 400} &&
                    log.dtypes == "float" && log.module_name == "model" &&
                    log.torch_distributed_debug == "OFF" && log.unused_parameter_size == 400;
    if (!is_right) return std::string("wrong");
    int64_t overlap = log.avg_backward_compute_comm_overlap_time;
    bool are_times = log.avg_forward_compute_time > 0 && log.avg_backward_comm_time > 0 &&
                     log.avg_backward_compute_time > 0 && overlap <= log.avg_backward_comm_time &&
                     overlap <= log.avg_backward_compute_time;
    return std::string(are_times ? "" : "wrong times");
  });
  EXPECT_THAT(texts, testing::Each(""));
}

}  // namespace
}  // namespace rankrun::comm

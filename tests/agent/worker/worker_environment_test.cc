#include "agent/worker/worker_environment.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <map>

#include "agent/job/environment.h"
#include "agent/machine/worker_gpus.h"

namespace rankrun::agent {
namespace {

struct WorkerEnvironmentTest : testing::Test {
  WorkerEnvironmentTest() {
    spec.workers = 4;
    spec.max_restarts = 3;
    spec.master_addr = "10.0.0.1";
    spec.run_id = "job-7";
    spec.environment = {"PATH=/bin", "HOME=/root"};
  }

  // Returns the environment as a map; each name must occur once.
  std::map<std::string, std::string> Make() {
    std::map<std::string, std::string> variables;
    for (const std::string& entry : WorkerEnvironment(spec, attempt).Of(worker)) {
      size_t equals = entry.find('=');
      bool is_new = variables.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second;
      EXPECT_TRUE(is_new) << entry;
    }
    return variables;
  }
  std::string Get(const std::string& name) {
    auto variables = Make();
    auto found = variables.find(name);
    return found == variables.end() ? "(unset)" : found->second;
  }

  JobSpec spec;
  AttemptPlace attempt{
      .node = {.attempt = 1, .world_size = 4, .master_addr = "10.0.0.1", .master_port = 29501}};
  WorkerPlace worker{.local_rank = 2,
                     .threads = 4,
                     .error_file = "/tmp/e/error.json",
                     .status_path = "/proc/9/fd/12"};
};

// Source: the table of torchrun's contract, one row each.
TEST_F(WorkerEnvironmentTest, FulfilsTorchrunsContract) {
  std::map<std::string, std::string> contract = {
      {"RANK", "2"},
      {"LOCAL_RANK", "2"},
      {"GROUP_RANK", "0"},
      {"ROLE_RANK", "2"},
      {"ROLE_NAME", "default"},
      {"LOCAL_WORLD_SIZE", "4"},
      {"WORLD_SIZE", "4"},
      {"GROUP_WORLD_SIZE", "1"},
      {"ROLE_WORLD_SIZE", "4"},
      {"MASTER_ADDR", "10.0.0.1"},
      {"MASTER_PORT", "29501"},
      {"TORCHELASTIC_RESTART_COUNT", "1"},
      {"TORCHELASTIC_MAX_RESTARTS", "3"},
      {"TORCHELASTIC_RUN_ID", "job-7"},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
      {"OMP_NUM_THREADS", "4"},
      {"TORCHELASTIC_ERROR_FILE", "/tmp/e/error.json"},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
      {"RANKRUN_STATUS_FD", "3"},
      {"RANKRUN_STATUS_PATH", "/proc/9/fd/12"},
      {"PATH", "/bin"},
      {"HOME", "/root"},
  };
  EXPECT_EQ(Make(), contract);
}

TEST_F(WorkerEnvironmentTest, OurPlaceReplacesThatOfAnOuterLauncher) {
  spec.environment = {"RANK=17",
                      "LOCAL_RANK=17",
                      "WORLD_SIZE=64",
                      "MASTER_ADDR=other",
                      "MASTER_PORT=1",
                      "TORCHELASTIC_RUN_ID=outer",
                      "GROUP_RANK=5",
                      "RANKRUN_STATUS_FD=99",
                      "TORCHELASTIC_ERROR_FILE=/outer",
                      "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGUSR1",
                      "TORCHELASTIC_USE_AGENT_STORE=False"};
  EXPECT_EQ(Get("RANK"), "2");
  EXPECT_EQ(Get("LOCAL_RANK"), "2");
  EXPECT_EQ(Get("WORLD_SIZE"), "4");
  EXPECT_EQ(Get("MASTER_ADDR"), "10.0.0.1");
  EXPECT_EQ(Get("MASTER_PORT"), "29501");
  EXPECT_EQ(Get("TORCHELASTIC_RUN_ID"), "job-7");
  EXPECT_EQ(Get("GROUP_RANK"), "0");
  EXPECT_EQ(Get("RANKRUN_STATUS_FD"), "3");
  EXPECT_EQ(Get("TORCHELASTIC_ERROR_FILE"), "/tmp/e/error.json");
  EXPECT_EQ(Get("TORCHELASTIC_SIGNALS_TO_HANDLE"), "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
  EXPECT_EQ(Get("TORCHELASTIC_USE_AGENT_STORE"), "True");
}

TEST_F(WorkerEnvironmentTest, TheUsersOwnChoicesAreKept) {
  spec.environment = {"OMP_NUM_THREADS=7", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0",
                      "CUDA_VISIBLE_DEVICES=1,3"};
  EXPECT_EQ(Get("OMP_NUM_THREADS"), "7");
  EXPECT_EQ(Get("TORCH_NCCL_ASYNC_ERROR_HANDLING"), "0");
  EXPECT_EQ(Get("CUDA_VISIBLE_DEVICES"), "1,3");
}

TEST_F(WorkerEnvironmentTest, VariablesThatTheContractLeavesUnsetStayUnset) {
  EXPECT_EQ(Get("CUDA_VISIBLE_DEVICES"), "(unset)");
  EXPECT_EQ(Get("TORCHELASTIC_TIMER_FILE"), "(unset)");
}

TEST_F(WorkerEnvironmentTest, TheJobsRoleAndSignalsAreSet) {
  spec.role = "trainer";
  spec.end_signals = {SIGTERM, SIGUSR1};
  EXPECT_EQ(Get("ROLE_NAME"), "trainer");
  EXPECT_EQ(Get("TORCHELASTIC_SIGNALS_TO_HANDLE"), "SIGTERM,SIGUSR1");
}

TEST_F(WorkerEnvironmentTest, TypedGpusAreSeenByAllWorkers) {
  spec.environment = {"CUDA_VISIBLE_DEVICES=1,3"};
  spec.gpus = {"2", "4", "7"};
  EXPECT_EQ(Get("CUDA_VISIBLE_DEVICES"), "2,4,7");
  EXPECT_EQ(Get("LOCAL_RANK"), "2");
}

TEST_F(WorkerEnvironmentTest, AVirtualLocalRankIsZeroOnOneGpu) {
  spec.virtual_local_rank = true;
  EXPECT_EQ(Get("LOCAL_RANK"), "0");
  EXPECT_EQ(Get("RANK"), "2");
  EXPECT_EQ(Get("CUDA_VISIBLE_DEVICES"), "2") << "without a list the local rank itself";
  spec.environment = {"CUDA_VISIBLE_DEVICES=4, 5 , 6,7"};
  EXPECT_EQ(Get("CUDA_VISIBLE_DEVICES"), "6");
  spec.gpus = {"GPU-a", "GPU-b", "GPU-c", "GPU-d"};
  EXPECT_EQ(Get("CUDA_VISIBLE_DEVICES"), "GPU-c");
}

TEST_F(WorkerEnvironmentTest, AVirtualLocalRankOfAnotherMakerHasItsVariable) {
  spec.virtual_local_rank = true;
  spec.gpu_variable = "HIP_VISIBLE_DEVICES";
  spec.environment = {"HIP_VISIBLE_DEVICES=4,5,6,7", "CUDA_VISIBLE_DEVICES=4,5,6,7"};
  EXPECT_EQ(Get("HIP_VISIBLE_DEVICES"), "6");
  EXPECT_EQ(Get("CUDA_VISIBLE_DEVICES"), "(unset)") << "PyTorch refuses another value";
  spec.environment = {"CUDA_VISIBLE_DEVICES="};
  spec.gpu_variable = "ASCEND_RT_VISIBLE_DEVICES";
  EXPECT_EQ(Get("ASCEND_RT_VISIBLE_DEVICES"), "2");
  EXPECT_EQ(Get("CUDA_VISIBLE_DEVICES"), "");
  spec.gpu_variable = "ONEAPI_DEVICE_SELECTOR";
  spec.environment = {"ONEAPI_DEVICE_SELECTOR=level_zero:0,2,4,6"};
  EXPECT_EQ(Get("ONEAPI_DEVICE_SELECTOR"), "level_zero:4");
  spec.environment = {"ONEAPI_DEVICE_SELECTOR=level_zero:0,2"};
  EXPECT_EQ(CheckGpus(spec).error().message,
            "--virtual-local-rank gives each worker a GPU: 4 workers, but "
            "ONEAPI_DEVICE_SELECTOR=level_zero:0,2 names 2");
}

TEST_F(WorkerEnvironmentTest, GpusOfAFlagHaveTheFormOfTheVariable) {
  spec.gpu_variable = "ONEAPI_DEVICE_SELECTOR";
  spec.gpus = {"3", "1", "2", "0"};
  EXPECT_EQ(Get("ONEAPI_DEVICE_SELECTOR"), "level_zero:3;level_zero:1;level_zero:2;level_zero:0");
  spec.virtual_local_rank = true;
  EXPECT_EQ(Get("ONEAPI_DEVICE_SELECTOR"), "level_zero:2");
}

TEST_F(WorkerEnvironmentTest, TooFewGpusForVirtualLocalRanksAreCounted) {
  EXPECT_TRUE(CheckGpus(spec));
  spec.environment = {"CUDA_VISIBLE_DEVICES=4,5"};
  EXPECT_TRUE(CheckGpus(spec)) << "workers may share GPUs";
  spec.virtual_local_rank = true;
  auto few = CheckGpus(spec);
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(few.error().message,
            "--virtual-local-rank gives each worker a GPU: 4 workers, but "
            "CUDA_VISIBLE_DEVICES=4,5 names 2");
  spec.environment = {"CUDA_VISIBLE_DEVICES="};
  EXPECT_EQ(CheckGpus(spec).error().message,
            "--virtual-local-rank gives each worker a GPU: 4 workers, but "
            "CUDA_VISIBLE_DEVICES= names 0");
  spec.gpus = {"0", "1", "2"};
  EXPECT_EQ(CheckGpus(spec).error().message,
            "--virtual-local-rank gives each worker a GPU: 4 workers, but --gpus 0,1,2 names 3");
  spec.gpus->push_back("3");
  EXPECT_TRUE(CheckGpus(spec));
}

// As in torchrun, an empty list has one empty entry.
TEST_F(WorkerEnvironmentTest, AnEmptyListOfGpusHidesThemFromOneVirtualWorker) {
  spec.virtual_local_rank = true;
  spec.workers = 1;
  worker.local_rank = 0;
  spec.environment = {"CUDA_VISIBLE_DEVICES="};
  EXPECT_TRUE(CheckGpus(spec));
  EXPECT_EQ(Get("CUDA_VISIBLE_DEVICES"), "");
}

TEST_F(WorkerEnvironmentTest, TheLastOfSeveralEntriesCounts) {
  EXPECT_EQ(VariableOf({"A=1", "AB=2", "A=3=4"}, "A"), "3=4");
  EXPECT_EQ(VariableOf({"A="}, "A"), "");
  EXPECT_EQ(VariableOf({"AB=2"}, "A"), std::nullopt);
}

TEST_F(WorkerEnvironmentTest, ThePipesAreNamedIfThereAreAny) {
  attempt.save_fifo = "/tmp/e/saving";
  attempt.timer_file = "/tmp/e/timer";
  EXPECT_EQ(Get("RANKRUN_SAVE_FIFO"), "/tmp/e/saving");
  EXPECT_EQ(Get("TORCHELASTIC_TIMER_FILE"), "/tmp/e/timer");
  attempt.breakpoint_pipe = "/proc/9/fd/13";
  EXPECT_EQ(Get("RANKRUN_BREAKPOINT_PIPE"), "/proc/9/fd/13");
}

TEST_F(WorkerEnvironmentTest, AnOuterLaunchersPipeAndOptOutAreNotOurs) {
  spec.environment = {"RANKRUN_SAVE_FIFO=/outer", "RANKRUN_KEEP=1",
                      "RANKRUN_BREAKPOINT_PIPE=/outer", "TORCHELASTIC_TIMER_FILE=/typed"};
  EXPECT_EQ(Get("RANKRUN_SAVE_FIFO"), "(unset)");
  EXPECT_EQ(Get("RANKRUN_BREAKPOINT_PIPE"), "(unset)");
  EXPECT_EQ(Get("RANKRUN_KEEP"), "(unset)");
  EXPECT_EQ(Get("TORCHELASTIC_TIMER_FILE"), "/typed") << "as torchrun passes it on";
}

TEST_F(WorkerEnvironmentTest, PyTorchDumpsIntoTheFolderOfTheAttempt) {
  EXPECT_EQ(Get("TORCH_FR_DUMP_TEMP_FILE"), "(unset)");
  attempt.torch_dumps = "/tmp/e/calls_";
  EXPECT_EQ(Get("TORCH_FR_DUMP_TEMP_FILE"), "/tmp/e/calls_");
  spec.environment = {"TORCH_FR_DUMP_TEMP_FILE=/typed"};
  EXPECT_EQ(Get("TORCH_FR_DUMP_TEMP_FILE"), "/typed");
  spec.environment = {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/typed"};
  EXPECT_EQ(Get("TORCH_FR_DUMP_TEMP_FILE"), "(unset)") << "it would replace the typed one";
}

TEST_F(WorkerEnvironmentTest, WithoutAnErrorFileTheVariableIsEmpty) {
  worker.error_file = "";
  EXPECT_EQ(Get("TORCHELASTIC_ERROR_FILE"), "");
}

TEST_F(WorkerEnvironmentTest, WithoutAStatusPageThereIsNoneOfAnOuterLauncherEither) {
  worker.status_path = "";
  spec.environment = {"RANKRUN_STATUS_FD=3", "RANKRUN_STATUS_PATH=/proc/1/fd/5"};
  EXPECT_EQ(Get("RANKRUN_STATUS_FD"), "(unset)");
  EXPECT_EQ(Get("RANKRUN_STATUS_PATH"), "(unset)");
}

TEST_F(WorkerEnvironmentTest, ValuesMayHoldAnything) {
  spec.environment = {"A=b=c", "EMPTY=", "LINES=x\ny", "noise without a sign"};
  EXPECT_EQ(Get("A"), "b=c");
  EXPECT_EQ(Get("EMPTY"), "");
  EXPECT_EQ(Get("LINES"), "x\ny");
  EXPECT_EQ(Make().count("noise without a sign"), 0u);
}

TEST_F(WorkerEnvironmentTest, TheFolderOfTracesIsThatOfTheAgent) {
  EXPECT_EQ(Get("RANKRUN_TRACE"), "(unset)");
  spec.environment = {"RANKRUN_TRACE=relative"};
  attempt.trace_dir = "/home/user/relative";
  EXPECT_EQ(Get("RANKRUN_TRACE"), "/home/user/relative");
}

}  // namespace
}  // namespace rankrun::agent

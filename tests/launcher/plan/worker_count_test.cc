#include "launcher/plan/worker_count.h"

#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

struct Rig {
  Words gpus = {};
  int cpus = 6;
  bool one_by_default = false;
  Words environment = {};
  TorchDevices of_torch = {};
};

Result<TorchDevices> NoTorch() { return TorchDevices(); }

Result<WorkerCount> Read(const Words& flags, const Rig& rig) {
  Settings settings = SettingsOf(flags);
  auto typed = ReadGpus(settings, [&rig]() { return Result<Words>(rig.gpus); });
  if (!typed) return typed.error();
  auto used = agent::FindAccelerators(rig.environment, "/no/root");
  return ReadWorkerCount(
      settings, {.gpus_typed = *typed,
                 .accelerators = used,
                 .visible_gpus = [&] { return Result<Words>(used.listed.value_or(rig.gpus)); },
                 .ask_torch = [&rig] { return Result<TorchDevices>(rig.of_torch); },
                 .cpus = rig.cpus,
                 .one_by_default = rig.one_by_default});
}

int WorkersOf(const Words& flags, const Rig& rig = {}) {
  auto count = Read(flags, rig);
  EXPECT_TRUE(count) << count.error().message;
  return count ? count->workers : -1;
}

std::string ErrorOf(const Words& flags, const Rig& rig = {}) {
  auto count = Read(flags, rig);
  return count ? "accepted" : count.error().message;
}

TEST(WorkerCountTest, ANumberIsANumber) {
  EXPECT_EQ(WorkersOf({"-n1"}), 1);
  EXPECT_EQ(WorkersOf({"-n10000"}), 10'000);
  EXPECT_EQ(Read({"-n4"}, {})->why, "");
}

TEST(WorkerCountTest, TheDefaultIsTheNumberOfGpusElseOne) {
  EXPECT_EQ(WorkersOf({}), 1);
  EXPECT_EQ(WorkersOf({}, {.gpus = {"0", "1", "2"}}), 3);
  EXPECT_EQ(WorkersOf({"--gpus=0,2"}, {.gpus = {"0", "1", "2"}}), 2);
  EXPECT_EQ(WorkersOf({}, {.gpus = {"0", "1", "2"}, .one_by_default = true}), 1);
  EXPECT_EQ(Read({}, {.gpus = {"0", "1"}})->why, "one for each of 2 GPUs that we may use");
  EXPECT_EQ(Read({"--gpus=0"}, {.gpus = {"0"}})->why, "one for each of 1 GPU of --gpus");
}

TEST(WorkerCountTest, WordsStandForDevicesOfTheMachine) {
  Rig none;
  Rig some{.gpus = {"0", "GPU-1"}};
  EXPECT_EQ(WorkersOf({"-ncpu"}, some), 6);
  EXPECT_EQ(WorkersOf({"-ngpu"}, some), 2);
  EXPECT_EQ(WorkersOf({"-nauto"}, some), 2);
  EXPECT_EQ(WorkersOf({"-nauto"}, none), 6);
  EXPECT_EQ(WorkersOf({"-ngpu", "--gpus=1"}, some), 1);
  EXPECT_EQ(ErrorOf({"-ngpu"}, none),
            "--nproc-per-node: gpu needs a GPU, and there is none that we may use");
}

TEST(WorkerCountTest, DevicesOfOtherMakersCount) {
  struct Row {
    const char* variable;
    int workers;
    const char* why;
  };
  for (const Row& row :
       {Row{"HIP_VISIBLE_DEVICES=2,3", 2, "one for each of 2 GPUs that we may use"},
        Row{"ROCR_VISIBLE_DEVICES=GPU-8a", 1, "one for each of 1 GPU that we may use"},
        Row{"ZE_AFFINITY_MASK=0.0,0.1,1", 3, "one for each of 3 GPUs that we may use"},
        Row{"ONEAPI_DEVICE_SELECTOR=level_zero:0,2", 2, "one for each of 2 GPUs that we may use"},
        Row{"ASCEND_RT_VISIBLE_DEVICES=0,1,6,7", 4, "one for each of 4 NPUs that we may use"}}) {
    Rig rig{.environment = {row.variable}};
    for (const Words& flags : {Words{}, Words{"-nauto"}, Words{"-ngpu"}}) {
      EXPECT_EQ(WorkersOf(flags, rig), row.workers) << row.variable;
      EXPECT_EQ(Read(flags, rig)->why, row.why) << row.variable;
    }
  }
}

TEST(WorkerCountTest, PyTorchIsAskedForDevicesThatRankrunDoesNotFind) {
  Rig rig{.of_torch = {"hpu", 8}};
  for (const char* word : {"auto", "gpu", "hpu"}) EXPECT_EQ(WorkersOf({"-n", word}, rig), 8);
  EXPECT_EQ(Read({"-nauto"}, rig)->why, "one for each of 8 hpu devices that PyTorch finds");
  EXPECT_EQ(Read({"-nauto"}, rig)->torch_type, "hpu");
  EXPECT_EQ(WorkersOf({}, rig), 1) << "only if a word wants it";
  rig.gpus = {"0"};
  EXPECT_EQ(WorkersOf({"-nauto"}, rig), 1) << "rankrun has found one";
  EXPECT_EQ(WorkersOf({"-nhpu"}, rig), 8);
  EXPECT_EQ(ErrorOf({"-nxpu"}, rig),
            "--nproc-per-node: xpu needs a device of this type, and there is none that we may use");
  Rig mask{.environment = {"ZE_AFFINITY_MASK=0,1"}};
  EXPECT_EQ(WorkersOf({"-nxpu"}, mask), 2);
}

TEST(WorkerCountTest, WhileAVariableNamesDevicesCpusDoNotCount) {
  for (const std::string variable :
       {"CUDA_VISIBLE_DEVICES=0,0", "ONEAPI_DEVICE_SELECTOR=level_zero:gpu"}) {
    EXPECT_EQ(ErrorOf({"-nauto"}, {.environment = {variable}}),
              "--nproc-per-node: auto finds no device of " + variable + "; want a number, or cpu");
    EXPECT_EQ(WorkersOf({"-ncpu"}, {.environment = {variable}}), 6);
  }
  for (const char* variable :
       {"CUDA_VISIBLE_DEVICES=", "HIP_VISIBLE_DEVICES=-1", "ONEAPI_DEVICE_SELECTOR=opencl:cpu"}) {
    EXPECT_EQ(WorkersOf({"-nauto"}, {.environment = {variable}}), 6) << variable;
  }
}

TEST(WorkerCountTest, TheLimitOfAContainerCountsIfItIsLower) {
  auto none = [] { return Result<Words>(Words{}); };
  CountedDevices devices{
      .gpus_typed = {}, .visible_gpus = none, .ask_torch = NoTorch, .cpus = 128, .cpu_limit = [] {
        return 8;
      }};
  for (const char* word : {"cpu", "auto"}) {
    auto count = ReadWorkerCount(SettingsOf({"-n", word}), devices);
    ASSERT_TRUE(count) << count.error().message;
    EXPECT_EQ(count->workers, 8);
    EXPECT_EQ(count->why, "one for each of 8 CPUs by the container's limit");
  }
  devices.cpu_limit = [] { return 200; };
  EXPECT_EQ(ReadWorkerCount(SettingsOf({"-ncpu"}), devices)->workers, 128);
  EXPECT_EQ(ReadWorkerCount(SettingsOf({"-ncpu"}), devices)->why,
            "one for each of 128 CPUs that we may use");
}

TEST(WorkerCountTest, OtherTextsThanCountsAreRefused) {
  std::string wanted =
      "--nproc-per-node: want a whole number from 1 to 10000, auto, cpu or gpu, got ";
  for (const char* bad : {"0", "-1", "1.5", "4x", "10001", "99999999999", "1e3", "+2", "many"}) {
    EXPECT_EQ(ErrorOf({"-n", bad}), wanted + '"' + bad + '"');
  }
  EXPECT_EQ(ErrorOf({"-ngpus"}), wanted + "\"gpus\"; did you mean gpu?");
}

TEST(WorkerCountTest, AFailureOfPyTorchIsAnErrorWhereItMatters) {
  auto broken = [] { return Result<TorchDevices>(Error{ErrorCode::kSystem, "no answer"}); };
  auto none = [] { return Result<Words>(Words{}); };
  CountedDevices devices{.gpus_typed = {}, .visible_gpus = none, .ask_torch = broken, .cpus = 2};
  EXPECT_EQ(ReadWorkerCount(SettingsOf({"-ngpu"}), devices).error().message,
            "--nproc-per-node gpu: no answer");
  EXPECT_EQ(ReadWorkerCount(SettingsOf({"-nauto"}), devices)->workers, 2);
  EXPECT_EQ(ReadWorkerCount(SettingsOf({"-nauto"}), devices)->why,
            "one for each of 2 CPUs that we may use, because no answer");
  devices.accelerators.named_by = "HIP_VISIBLE_DEVICES";
  EXPECT_EQ(ReadWorkerCount(SettingsOf({"-nauto"}), devices).error().message,
            "--nproc-per-node auto: no answer");
  EXPECT_EQ(ReadWorkerCount(SettingsOf({}), devices)->workers, 1);
}

TEST(WorkerCountTest, AFailedSearchIsAnErrorWhereItMatters) {
  auto broken = []() { return Result<Words>(Error{ErrorCode::kSystem, "no NVML"}); };
  CountedDevices devices{.gpus_typed = {}, .visible_gpus = broken, .ask_torch = NoTorch, .cpus = 2};
  EXPECT_EQ(ReadWorkerCount(SettingsOf({"-nauto"}), devices).error().message,
            "--nproc-per-node auto: no NVML");
  EXPECT_EQ(ReadWorkerCount(SettingsOf({}), devices).error().message, "no NVML");
  EXPECT_EQ(ReadWorkerCount(SettingsOf({"-n2"}), devices)->workers, 2);
  EXPECT_EQ(ReadWorkerCount(SettingsOf({"-ncpu"}), devices)->workers, 2);
}

TEST(WorkerCountTest, GpusAreAListWithoutRepetition) {
  Rig eight{.gpus = Words(8)};
  auto all = [&eight]() { return Result<Words>(eight.gpus); };
  auto gpus = ReadGpus(SettingsOf({"--gpus=2, 4,GPU-5"}), all);
  ASSERT_TRUE(gpus);
  EXPECT_EQ(*gpus, (Words{"2", "4", "GPU-5"}));
  EXPECT_EQ(*ReadGpus(SettingsOf({}), all), std::nullopt);
  for (const char* bad : {",", "1,", "1,,2", " ", "all", "-1"}) {
    EXPECT_EQ(ErrorOf({"--gpus", bad}),
              std::string("--gpus: want an index, GPU-<uuid> or MIG-<uuid>, or several with commas "
                          "between, as 0,2, got \"") +
                  bad + '"');
  }
  EXPECT_EQ(ErrorOf({"--gpus=1,2,1"}), "--gpus: GPU 1 is given twice, got \"1,2,1\"");
  EXPECT_EQ(ErrorOf({"--gpus=1,8"}, eight),
            "--gpus: there is no GPU 8, the last is 7, got \"1,8\"");
  EXPECT_EQ(ErrorOf({"--gpus=0"}), "--gpus: there is no GPU here, got \"0\"");
  auto broken = []() { return Result<Words>(Error{ErrorCode::kSystem, "no NVML"}); };
  EXPECT_TRUE(ReadGpus(SettingsOf({"--gpus=9"}), broken)) << "nobody counts";
}

}  // namespace
}  // namespace rankrun::launcher

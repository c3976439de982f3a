#include "launcher/plan/job_settings.h"

#include <signal.h>

#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

using agent::Binding;
using std::chrono::milliseconds;

const std::string kOwnSecret = "the user's own secret";

Machine TestMachine() {
  return {
      .environment = EnvironmentOf({}),
      .variables = {"HOME=/root", "EMPTY=", "PATH=/bin"},
      .accelerators =
          [](const Words& environment) { return agent::FindAccelerators(environment, "/no/root"); },
      .visible_gpus =
          [](const agent::Accelerators& used) {
            return Result<Words>(used.listed.value_or(Words{"0", "1", "2"}));
          },
      .cpus = 8,
      .open_files = 1024,
      .random_id = "random",
      .ask_torch = [](const Words&) { return Result<TorchDevices>(TorchDevices()); },
      .read_own_secret = [](const std::string&) -> Result<std::string> { return kOwnSecret; }};
}

JobPlan Plan(const Words& flags, std::string_view command = kRankrun) {
  auto plan = MakeJobPlan(SettingsOf(flags), command, TestMachine());
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? *plan : JobPlan{};
}

std::string ErrorOf(const Words& flags, const Variables& variables = {}) {
  auto plan = MakeJobPlan(SettingsOf(flags, variables), kRankrun, TestMachine());
  if (plan) return "accepted";
  EXPECT_EQ(plan.error().code, ErrorCode::kInvalid);
  return plan.error().message;
}

std::string DefaultOf(std::string_view name) {
  for (const Flag& flag : Flags()) {
    if (flag.name == name) return std::string(flag.default_value);
  }
  return "no such flag";
}

TEST(JobSettingsTest, TheDefaultsAreThoseOfTheTable) {
  JobPlan plan = Plan({});
  const agent::JobSpec& spec = plan.spec;
  EXPECT_EQ(spec.workers, 3);
  EXPECT_EQ(std::to_string(spec.max_restarts), DefaultOf("max-restarts"));
  EXPECT_EQ(std::to_string(spec.restart_pause / std::chrono::seconds(1)),
            DefaultOf("restart-pause"));
  EXPECT_EQ(std::to_string(spec.shutdown_timeout / std::chrono::seconds(1)),
            DefaultOf("shutdown-timeout"));
  EXPECT_EQ(spec.master_addr, DefaultOf("master-addr"));
  EXPECT_EQ(spec.role, DefaultOf("role"));
  EXPECT_EQ(spec.end_signals.size(), 4U);
  EXPECT_EQ(spec.save_timeout, milliseconds(0));
  EXPECT_EQ(spec.hang_notice, milliseconds(10'000));
  EXPECT_EQ(spec.hang_timeout, std::nullopt);
  EXPECT_EQ(spec.finish_timeout, std::nullopt);
  EXPECT_EQ(spec.time_limit, std::nullopt);
  EXPECT_EQ(spec.master_port, std::nullopt);
  EXPECT_EQ(spec.store_max_value, std::nullopt);
  EXPECT_EQ(spec.gpus, std::nullopt);
  EXPECT_EQ(spec.binding, Binding::kNone);
  EXPECT_EQ(spec.run_id, "random");
  EXPECT_EQ(spec.environment, TestMachine().variables);
  EXPECT_EQ(spec.open_files, 1024U);
  EXPECT_FALSE(spec.master_addr_typed || spec.continue_on_failure || spec.virtual_local_rank);
  EXPECT_EQ(spec.events_file, "");
  EXPECT_FALSE(spec.events_console);
  EXPECT_TRUE(plan.ignored.empty());
}

TEST(JobSettingsTest, EverySettingReachesTheJob) {
  agent::JobSpec spec = Plan({"-n8",
                              "--max-restarts=3",
                              "--master-addr=10.0.0.1",
                              "--master-port=29500",
                              "--store-max-value=100M",
                              "--restart-pause=0.5",
                              "--shutdown-timeout=2.5",
                              "--save-timeout=300",
                              "--hang-notice=0.5",
                              "--hang-timeout=90",
                              "--finish-timeout=7",
                              "--timeout=60",
                              "--continue-on-failure",
                              "--role=trainer",
                              "--rdzv-id=job7",
                              "--virtual-local-rank",
                              "--gpus=1,2",
                              "--bind=core",
                              "--events=e.jsonl",
                              "--event-log-handler=console",
                              "--signals-to-handle=TERM,USR1",
                              "--tee=3"})
                            .spec;
  EXPECT_EQ(spec.workers, 8);
  EXPECT_EQ(spec.max_restarts, 3);
  EXPECT_EQ(spec.restart_pause, milliseconds(500));
  EXPECT_EQ(spec.master_addr, "10.0.0.1");
  EXPECT_TRUE(spec.master_addr_typed);
  EXPECT_EQ(spec.master_port, 29500);
  EXPECT_EQ(spec.store_max_value, 100u << 20);
  EXPECT_EQ(spec.shutdown_timeout, milliseconds(2500));
  EXPECT_EQ(spec.save_timeout, milliseconds(300'000));
  EXPECT_EQ(spec.hang_notice, milliseconds(500));
  EXPECT_EQ(spec.hang_timeout, milliseconds(90'000));
  EXPECT_EQ(spec.finish_timeout, milliseconds(7'000));
  EXPECT_EQ(spec.time_limit, milliseconds(60'000));
  EXPECT_TRUE(spec.continue_on_failure);
  EXPECT_EQ(spec.role, "trainer");
  EXPECT_EQ(spec.run_id, "job7");
  EXPECT_TRUE(spec.virtual_local_rank);
  EXPECT_EQ(spec.gpus, (Words{"1", "2"}));
  EXPECT_EQ(spec.binding, Binding::kCore);
  EXPECT_EQ(spec.events_file, "e.jsonl");
  EXPECT_TRUE(spec.events_console);
  EXPECT_EQ(spec.end_signals, (std::vector<int>{SIGTERM, SIGUSR1}));
  ASSERT_EQ(spec.output.workers.size(), 8U);
  EXPECT_TRUE(spec.output.workers[7].standard_output.to_file);
}

TEST(JobSettingsTest, TheJobsListOfGpusCounts) {
  EXPECT_EQ(Plan({"-xCUDA_VISIBLE_DEVICES=0,1"}).spec.workers, 2);
  EXPECT_EQ(Plan({"-xCUDA_VISIBLE_DEVICES=0,1", "--gpus=2"}).spec.workers, 1);
}

TEST(JobSettingsTest, ATimeLimitOfZeroMeansNoLimit) {
  EXPECT_EQ(Plan({"--timeout=0"}).spec.time_limit, std::nullopt);
}

TEST(JobSettingsTest, UnderTorchrunsNameItsDefaultsHold) {
  EXPECT_EQ(Plan({}, kTorchrun).spec.workers, 1);
  EXPECT_TRUE(Plan({}, kTorchrun).spec.output.prefix_teed_only);
  EXPECT_EQ(Plan({"-n2"}, kTorchrun).spec.output.prefix, "[${role_name}${local_rank}]:");
  EXPECT_EQ(Plan({}, kRankrunLaunch).spec.workers, 1);
}

TEST(JobSettingsTest, WorkersDoNotInheritThePlaceOfRankrunInMpi) {
  Machine machine = TestMachine();
  machine.variables = {"OMPI_COMM_WORLD_RANK=0",
                       "OMPI_MCA_ess=^singleton",
                       "PMIX_RANK=0",
                       "PMI_FD=5",
                       "OMPI_MCA_btl=tcp",
                       "PATH=/bin"};
  machine.environment = EnvironmentOf({{"PMIX_RANK", "0"}});
  Settings settings = SettingsOf({"-n1", "--env=OMPI_MCA_btl", "--env=PMI_X=1"});
  auto plan = MakeJobPlan(settings, kRankrun, machine);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->spec.environment, (Words{"OMPI_MCA_btl=tcp", "PATH=/bin", "PMI_X=1"}));
  EXPECT_EQ(plan->ignored.back().what, "OMPI_*, PMIX_*, PMI_*");
  machine.environment = EnvironmentOf({});  // an MPI of the workers themselves
  EXPECT_EQ(MakeJobPlan(SettingsOf({"-n1"}), kRankrun, machine)->spec.environment,
            machine.variables);
}

TEST(JobSettingsTest, FewCpusOfAnMpirunOrSrunAreAWarning) {
  auto warnings = [](int cpus, const std::string& more_cpus) {
    Machine machine = TestMachine();
    machine.cpus = cpus;
    machine.online_cpus = 64;
    machine.scheduler.more_cpus = more_cpus;
    auto plan = MakeJobPlan(SettingsOf({"-n4"}), kRankrun, machine);
    return plan ? plan->warnings : Words{plan.error().message};
  };
  EXPECT_EQ(warnings(1, "mpirun --bind-to none"),
            Words{"4 workers share 1 of the 64 CPUs of this machine; to use more: mpirun "
                  "--bind-to none"});
  EXPECT_EQ(warnings(4, "mpirun --bind-to none"), Words{}) << "one for each";
  EXPECT_EQ(warnings(1, ""), Words{}) << "the user's own taskset";
}

TEST(JobSettingsTest, AVirtualLocalRankSetsTheVariableOfItsDevices) {
  auto variable_of = [](const Words& variables, const TorchDevices& of_torch) {
    Machine machine = TestMachine();
    machine.variables = variables;
    machine.visible_gpus = [](const agent::Accelerators& used) {
      return Result<Words>(used.listed.value_or(Words{}));
    };
    machine.ask_torch = [&](const Words&) { return Result<TorchDevices>(of_torch); };
    auto plan = MakeJobPlan(SettingsOf({"-nauto", "--virtual-local-rank"}), kRankrun, machine);
    return plan ? plan->spec.gpu_variable : plan.error().message;
  };
  EXPECT_EQ(variable_of({}, {}), "CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(variable_of({"ROCR_VISIBLE_DEVICES=2"}, {}), "ROCR_VISIBLE_DEVICES");
  EXPECT_EQ(variable_of({}, {"xpu", 2}), "ZE_AFFINITY_MASK") << "graphics inside of the CPU";
  EXPECT_EQ(variable_of({}, {"npu", 2}), "ASCEND_RT_VISIBLE_DEVICES");
}

TEST(JobSettingsTest, AcceleratorsAreSearchedOnlyWhereTheyMatter) {
  auto searches = [](const Words& flags) {
    int count = 0;
    Machine machine = TestMachine();
    machine.accelerators = [&](const Words&) {
      ++count;
      return agent::Accelerators();
    };
    auto plan = MakeJobPlan(SettingsOf(flags), kRankrun, machine);
    EXPECT_TRUE(plan) << plan.error().message;
    return count;
  };
  EXPECT_EQ(searches({"-n2"}), 0) << "a start would wait for it";
  for (const Words& flags : {Words{},
                             {"-nauto"},
                             {"-n2", "--gpus=0,1"},
                             {"-n2", "--bind=core"},
                             {"-n2", "--virtual-local-rank"}}) {
    EXPECT_EQ(searches(flags), 1) << testing::PrintToString(flags);
  }
}

TEST(JobSettingsTest, BindingsHaveTwoSpellings) {
  struct Row {
    const char* flag;
    Binding binding;
  };
  for (const Row& row :
       {Row{"--bind=none", Binding::kNone}, Row{"--bind=core", Binding::kCore},
        Row{"--bind=numa", Binding::kNuma}, Row{"--bind=socket", Binding::kSocket},
        Row{"--numa-binding=node", Binding::kNuma}, Row{"--numa-binding=socket", Binding::kSocket},
        Row{"--numa-binding=exclusive", Binding::kExclusive},
        Row{"--numa-binding=core-complex", Binding::kCoreComplex}}) {
    EXPECT_EQ(Plan({row.flag}).spec.binding, row.binding);
  }
  EXPECT_EQ(Plan({"--bind=numa", "--numa-binding=node"}).spec.binding, Binding::kNuma);
  EXPECT_EQ(ErrorOf({"--bind=core", "--numa-binding=node"}),
            "--bind core and --numa-binding node exclude each other; want one of them");
  EXPECT_EQ(ErrorOf({"--numa-binding=node"}, {{"RANKRUN_BIND", "none"}}),
            "RANKRUN_BIND none and --numa-binding node exclude each other; want one of them");
}

TEST(JobSettingsTest, VariablesAreSetOrPassedOn) {
  Words environment = Plan({"-xA=b=c", "--env", "HOME", "--env=E="}).spec.environment;
  EXPECT_EQ(environment, (Words{"HOME=/root", "EMPTY=", "PATH=/bin", "A=b=c", "E="}));
  EXPECT_EQ(Plan({"-xEMPTY"}).spec.environment.size(), 3U);
  EXPECT_EQ(ErrorOf({"-xNOWHERE"}), "--env: NOWHERE is not set here; want NOWHERE=VALUE");
  EXPECT_EQ(ErrorOf({"--env==b"}), "--env: want NAME=VALUE or NAME, got \"=b\"");
}

TEST(JobSettingsTest, OneNodeHasNoNodes) {
  EXPECT_EQ(Plan({"--nnodes=1:1"}).spec.nodes, std::nullopt);
  JobPlan plan = Plan({"--node-timeout=1"});
  EXPECT_EQ(plan.ignored, (std::vector<Note>{{"--node-timeout 1", "the job has one node"}}));
  EXPECT_TRUE(plan.warnings.empty());
}

TEST(JobSettingsTest, SeveralNodesReachTheJob) {
  JobPlan plan = Plan({"--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=h", "-n1",
                       "--rdzv-conf=close_timeout=1"});
  ASSERT_TRUE(plan.spec.nodes);
  EXPECT_EQ(plan.spec.nodes->max, 2);
  EXPECT_EQ(plan.spec.run_id, "none");
  EXPECT_EQ(plan.spec.master_port, std::nullopt);
  EXPECT_EQ(plan.spec.output.prefix, "[${rank}] ");
  EXPECT_EQ(plan.ignored.size(), 1U);
  EXPECT_EQ(plan.spec.nodes->secret, kOwnSecret);
  EXPECT_TRUE(plan.warnings.empty());
  agent::JobSpec with_master = Plan({"--nnodes=2", "--master-addr=h", "--node-rank=1"}).spec;
  ASSERT_TRUE(with_master.nodes);
  EXPECT_EQ(with_master.master_addr, "h");
  EXPECT_TRUE(with_master.master_addr_typed);
  EXPECT_EQ(with_master.master_port, 29500);
}

TEST(JobSettingsTest, ByTheNameTorchrunAJobWithoutASecretIsAWarning) {
  JobPlan plan = Plan({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=h"}, kTorchrun);
  EXPECT_EQ(plan.spec.nodes->secret, "");
  EXPECT_EQ(plan.warnings.size(), 1U);
}

TEST(JobSettingsTest, AnEmptySecretIsRefused) {
  Machine machine = TestMachine();
  machine.variables = {"RANKRUN_SECRET="};
  auto plan = MakeJobPlan(SettingsOf({"--nnodes=2"}), kRankrun, machine);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "RANKRUN_SECRET is empty, want a secret; unset it to have none");
  EXPECT_TRUE(MakeJobPlan(SettingsOf({}), kRankrun, machine)) << "one node needs no secret";
  machine.variables = {"RANKRUN_SECRET_FILE="};
  auto without_name = MakeJobPlan(SettingsOf({"--nnodes=2"}), kRankrun, machine);
  ASSERT_FALSE(without_name);
  EXPECT_EQ(without_name.error().message,
            "RANKRUN_SECRET_FILE is empty, want the name of a file; unset it to have none");
}

TEST(JobSettingsTest, TheSecretIsNotForTheWorkers) {
  Machine machine = TestMachine();
  machine.environment = EnvironmentOf({{"RANKRUN_SECRET", "hush-hush-hush-hush"}});
  machine.variables = {"RANKRUN_SECRET=hush-hush-hush-hush", "RANKRUN_SECRET_FILE=f", "A=b"};
  auto plan = MakeJobPlan(SettingsOf({"--nnodes=2"}), kRankrun, machine);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->spec.nodes->secret, "hush-hush-hush-hush");
  EXPECT_EQ(plan->spec.environment, Words{"A=b"});
  for (const char* entry : {"RANKRUN_SECRET", "RANKRUN_SECRET=x"}) {
    EXPECT_EQ(ErrorOf({"--env", entry}), "--env: RANKRUN_SECRET cannot be passed to the workers");
  }
}

TEST(JobSettingsTest, TheSchedulersGpusCountWhereNoListDoes) {
  struct Row {
    int said;
    Words flags;
    int workers;
    const char* why;
  };
  const char* slurms = "one for each of 2 GPUs of SLURM_GPUS_ON_NODE";
  for (const Row& row :
       {Row{2, {}, 2, slurms}, Row{4, {}, 3, "one for each of 3 GPUs that we may use"},
        Row{2, {"-ngpu"}, 2, slurms}, Row{2, {"-n5"}, 5, ""},
        Row{1, {"--gpus=0,1"}, 2, "one for each of 2 GPUs of --gpus"},
        Row{1, {"-xCUDA_VISIBLE_DEVICES=0,1"}, 2, "one for each of 2 GPUs that we may use"}}) {
    Machine machine = TestMachine();
    machine.scheduler.gpus = SourcedValue<int>{row.said, "SLURM_GPUS_ON_NODE"};
    auto plan = MakeJobPlan(SettingsOf(row.flags), kRankrun, machine);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->spec.workers, row.workers);
    EXPECT_EQ(plan->why_workers, row.why);
  }
  Machine blind = TestMachine();
  blind.visible_gpus = [](const auto&) { return Result<Words>(Words{}); };
  blind.scheduler.gpus = SourcedValue<int>{2, "SLURM_GPUS_ON_NODE"};
  EXPECT_EQ(MakeJobPlan(SettingsOf({}), kRankrun, blind)->spec.workers, 2);
}

TEST(JobSettingsTest, ALineForWhoHasStartedUsIsAWarning) {
  Machine machine = TestMachine();
  machine.scheduler.advice = "use srun";
  EXPECT_EQ(MakeJobPlan(SettingsOf({}), kRankrun, machine)->warnings, Words{"use srun"});
}

TEST(JobSettingsTest, ALogsSpecsIsRefused) {
  EXPECT_EQ(ErrorOf({"--logs-specs=mine"}),
            "--logs-specs: names a Python class, which rankrun cannot load; use --log-dir, "
            "--redirects and --tee");
}

TEST(JobSettingsTest, AnUnknownSignalNamesItsOrigin) {
  EXPECT_EQ(ErrorOf({}, {{"PET_SIGNALS_TO_HANDLE", "SIGTERN"}}),
            "PET_SIGNALS_TO_HANDLE: unknown signal \"SIGTERN\"; did you mean SIGTERM?");
}

TEST(JobSettingsTest, SettingsWithoutEffectAreNoted) {
  EXPECT_EQ(Plan({"--monitor-interval=5", "--start-method=fork", "--run-path", "-m"}).ignored,
            (std::vector<Note>{{"--module true", "overridden by --run-path"},
                               {"--monitor-interval 5", "rankrun sees each exit at once"},
                               {"--start-method fork", "every worker is a new process"}}));
  EXPECT_EQ(Plan({"--use-env"}, kTorchrun).ignored,
            (std::vector<Note>{{"--use-env true", "only rankrun-launch passes --local-rank"}}));
  EXPECT_EQ(Plan({"--use-env"}, kRankrunLaunch).ignored, std::vector<Note>{});
}

Result<ProgramRequest> Request(const Words& flags, std::string_view command = kRankrun,
                               const Words& words = {"train.py"}) {
  return MakeProgramRequest(SettingsOf(flags), command, words);
}

TEST(ProgramRequestTest, TheNameAndTheFlagsSayHowToExecute) {
  struct Row {
    Words flags;
    std::string_view command;
    bool module, no_python, always_python;
  };
  for (const Row& row :
       {Row{{}, kRankrun, false, false, false}, Row{{}, kTorchrun, false, false, true},
        Row{{"-m"}, kRankrun, true, false, false},
        Row{{"--no-python"}, kTorchrun, false, true, true},
        Row{{"--run-path"}, kRankrun, false, false, true},
        Row{{"--run-path", "--no-python", "-m"}, kRankrun, false, false, true}}) {
    auto request = Request(row.flags, row.command);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->module, row.module);
    EXPECT_EQ(request->no_python, row.no_python);
    EXPECT_EQ(request->always_python, row.always_python);
    EXPECT_EQ(request->program, Words{"train.py"});
  }
}

TEST(ProgramRequestTest, ByTheNameRankrunLaunchTheProgramGetsItsLocalRank) {
  const Words words{"train.py", "--epochs", "3"};
  EXPECT_EQ(Request({}, kRankrunLaunch, words)->program,
            (Words{"train.py", "--local-rank=${local_rank}", "--epochs", "3"}));
  EXPECT_TRUE(Request({}, kRankrunLaunch, words)->always_python);
  EXPECT_EQ(Request({"--use-env"}, kRankrunLaunch, words)->program, words);
  EXPECT_EQ(Request({"--use_env", "--no-python"}, kRankrunLaunch, words)->program, words);
  EXPECT_EQ(Request({"--no-python"}, kRankrunLaunch, words).error().message,
            "--no-python needs --use-env: only a Python program gets --local-rank");
}

TEST(ProgramRequestTest, ModuleAndNoPythonExcludeEachOther) {
  EXPECT_EQ(Request({"-m", "--no-python"}).error().message,
            "--module and --no-python exclude each other");
}

TEST(ProgramRequestTest, AProgramIsNeeded) {
  EXPECT_EQ(Request({}, kRankrun, {}).error().message,
            "no program given; usage: rankrun [flags] program [arguments]");
  EXPECT_EQ(Request({}, kTorchrun, {""}).error().message,
            "no program given; usage: torchrun [flags] program [arguments]");
}

}  // namespace
}  // namespace rankrun::launcher

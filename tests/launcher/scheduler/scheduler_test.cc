#include "launcher/scheduler/scheduler.h"

#include "launcher/scheduler/mpi.h"
#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

const Variables kStep = {{"SLURM_JOB_ID", "17"},
                         {"SLURM_STEP_ID", "3"},
                         {"SLURM_PROCID", "1"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_STEP_NUM_NODES", "2"},
                         {"SLURM_STEP_NODELIST", "n[01-02]"},
                         {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                         {"SLURMD_NODENAME", "n02"}};
const Variables kPod = {{"JOB_COMPLETION_INDEX", "1"}};
const Variables kMpi = {{"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_RANK", "3"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
const std::string kPodAddress = "10.0.0.5\ttrain-1.net.default.svc.cluster.local\ttrain-1\n";

Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Scheduler Read(const Variables& variables, const std::string& hosts = kPodAddress) {
  return ReadScheduler({.environment = EnvironmentOf(variables),
                        .host_name = "train-1",
                        .hosts_file = [hosts] { return hosts; }});
}

// Returns "name=value (origin)" for each setting from the scheduler, or the
// error.
Words Added(const Variables& variables, const Words& flags = {}) {
  auto source = SettingsOfScheduler(Read(variables), SettingsOf(flags));
  if (!source) return {source.error().message};
  Words added;
  for (const auto& [name, setting] : *source) {
    added.push_back(name + "=" + ShownValue(setting) + " (" + setting.origin + ")");
  }
  return added;
}

TEST(SchedulerTest, AStepOfSlurmNeedsNoFlag) {
  EXPECT_EQ(
      Added(kStep),
      (Words{"nnodes=2 (SLURM_STEP_NUM_NODES)", "rdzv-backend=c10d (SLURM_STEP_NODELIST)",
             "rdzv-endpoint=n01:21720 (SLURM_STEP_NODELIST)", "rdzv-id=17.3 (SLURM_JOB_ID)"}));
  EXPECT_EQ(Added(With(kStep, {{"SLURM_STEP_NUM_NODES", "1"}})), Words{});
}

TEST(SchedulerTest, TypedSettingsTakePrecedence) {
  EXPECT_EQ(Added(kStep, {"--nnodes=1"}), Words{"nnodes=2 (SLURM_STEP_NUM_NODES)"});
  EXPECT_EQ(Added(kStep, {"--standalone"}), Words{});
  EXPECT_EQ(Added(kStep, {"--nnodes=1:2", "--rdzv-id=a"}),
            (Words{"nnodes=2 (SLURM_STEP_NUM_NODES)", "rdzv-backend=c10d (SLURM_STEP_NODELIST)",
                   "rdzv-endpoint=n01:21720 (SLURM_STEP_NODELIST)"}));
  EXPECT_EQ(Added(kStep, {"--rdzv-backend=c10d", "--rdzv-endpoint=h:1"}),
            (Words{"nnodes=2 (SLURM_STEP_NUM_NODES)", "rdzv-id=17.3 (SLURM_JOB_ID)"}));
}

TEST(SchedulerTest, ATypedMasterIsStaticWithTheSchedulersIndex) {
  Words rest = {"nnodes=2 (SLURM_STEP_NUM_NODES)", "node-rank=1 (SLURM_NODEID)",
                "rdzv-id=17.3 (SLURM_JOB_ID)"};
  EXPECT_EQ(Added(kStep, {"--master-addr=h"}), rest);
  EXPECT_EQ(Added(kStep, {"--rdzv-endpoint=h:1"}), rest);
  EXPECT_EQ(Added(kStep, {"--master-addr=h", "--node-rank=0"}), (Words{rest[0], rest[2]}));
  EXPECT_EQ(Added(kStep, {"--master-port=1"}),
            (Words{"master-addr=n01 (SLURM_STEP_NODELIST)", rest[0], rest[1], rest[2]}));
  EXPECT_EQ(Added(kStep, {"--rdzv-backend=static"}),
            (Words{rest[0], rest[1], "rdzv-endpoint=n01:21720 (SLURM_STEP_NODELIST)", rest[2]}));
}

TEST(SchedulerTest, SeveralTasksOnANodeAreRefused) {
  Variables four = With(kStep, {{"SLURM_STEP_TASKS_PER_NODE", "1,4"}});
  EXPECT_EQ(Added(four),
            Words{"SLURM_STEP_TASKS_PER_NODE: srun starts rankrun 4 times on a node, but rankrun "
                  "starts the workers itself: want srun --ntasks-per-node=1, or --standalone for "
                  "one job per process"});
  EXPECT_EQ(Added(four, {"--standalone"}), Words{});
  EXPECT_EQ(Added(four, {"--nnodes=1"}).size(), 1U);
  four = With(kStep, {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "4"}});
  EXPECT_EQ(Added(four).size(), 1U);
}

TEST(SchedulerTest, WrongVariablesOfSlurmAreRefusedWhereTheyCount) {
  struct Row {
    Variables wrong;
    const char* error;
  };
  for (const Row& row :
       {Row{{{"SLURM_STEP_NODELIST", "n["}},
            "SLURM_STEP_NODELIST: a bracket is not closed in \"n[\"; want --rdzv-endpoint "
            "HOST:PORT"},
        Row{{{"SLURM_STEP_NODELIST", ""}},
            "SLURM_STEP_NODELIST: it is not set; want --rdzv-endpoint HOST:PORT"},
        Row{{{"SLURM_JOB_ID", "x"}},
            "SLURM_JOB_ID: want a number, got \"x\"; or --rdzv-endpoint HOST:PORT"},
        Row{{{"SLURM_NODEID", ""}},
            "SLURM_NODEID: it is not set; want --rdzv-endpoint HOST:PORT"}}) {
    EXPECT_EQ(Added(With(kStep, row.wrong)), Words{row.error});
    EXPECT_GT(Added(With(kStep, row.wrong), {"--rdzv-endpoint=h:1"}).size(), 1U);
  }
  EXPECT_EQ(Added(With(kStep, {{"SLURM_STEP_NUM_NODES", "x"}})),
            Words{"SLURM_STEP_NUM_NODES: the number of nodes is missing or wrong; want --nnodes "
                  "N"});
}

TEST(SchedulerTest, OutsideOfAStepThisNodeIsAlone) {
  Variables batch = With(kStep, {{"SLURM_STEP_ID", ""}, {"SLURM_NNODES", "2"}});
  EXPECT_EQ(Added(batch), Words{});
  std::string how = "; to use its nodes: srun --ntasks-per-node=1 rankrun ...";
  std::string here = "SLURM job 17 has 2 nodes, but rankrun runs on this one only";
  auto advice = [](const Variables& variables, const Words& flags = {}) {
    return AdviceOf(Read(variables), SettingsOf(flags));
  };
  EXPECT_EQ(advice(batch), here + how);
  EXPECT_EQ(advice(With(kStep, {{"SLURM_STEP_ID", "4294967290"}, {"SLURM_NNODES", "2"}})),
            here + how);
  EXPECT_EQ(advice(With(batch, {{"SLURM_NNODES", "1"}})), "");
  EXPECT_EQ(advice(With(batch, {{"SLURMD_NODENAME", ""}})),
            "SLURM job 17 does not include this host, on which the workers will run" + how);
  EXPECT_EQ(advice(batch, {"--nnodes=1"}), "");
  EXPECT_EQ(advice(batch, {"--standalone"}), "");
  EXPECT_EQ(advice(batch, {"--nnodes=2"}), here + how);
  EXPECT_EQ(advice(batch, {"--nnodes=2", "--rdzv-endpoint=h:1"}), "");
  EXPECT_EQ(advice(kStep), "");
}

TEST(SchedulerTest, OlderNamesOfSlurmAreReadToo) {
  Variables old = {{"SLURM_JOBID", "17"},
                   {"SLURM_STEPID", "3"},
                   {"SLURM_PROCID", "0"},
                   {"SLURM_NODEID", "0"},
                   {"SLURM_NNODES", "2"},
                   {"SLURM_NODELIST", "a,b"},
                   {"SLURM_TASKS_PER_NODE", "1(x2)"}};
  EXPECT_EQ(Added(old),
            (Words{"nnodes=2 (SLURM_NNODES)", "rdzv-backend=c10d (SLURM_NODELIST)",
                   "rdzv-endpoint=a:21720 (SLURM_NODELIST)", "rdzv-id=17.3 (SLURM_JOBID)"}));
}

TEST(SchedulerTest, PortsOfStepsAreBelowThoseOfClients) {
  auto port = [](const std::string& job, const std::string& step) {
    return Read(With(kStep, {{"SLURM_JOB_ID", job}, {"SLURM_STEP_ID", step}})).endpoint->value.port;
  };
  EXPECT_EQ(port("0", "0"), 20'000);
  EXPECT_EQ(port("17", "3"), 21'720);
  EXPECT_EQ(port("9000", "0"), 20'000);
  EXPECT_EQ(port("8999", "100"), 28'999);
  EXPECT_NE(port("100", "0"), port("101", "0"));
  EXPECT_LT(port("18446744073709551615", "4294967279"), 29'000);
}

TEST(SchedulerTest, SlurmsGpusAreCounted) {
  EXPECT_EQ(Read(With(kStep, {{"SLURM_GPUS_ON_NODE", "a100:4"}})).gpus,
            (SourcedValue<int>{4, "SLURM_GPUS_ON_NODE"}));
  EXPECT_EQ(Read(With(kStep, {{"SLURM_GPUS_ON_NODE", "0"}})).gpus, std::nullopt);
  EXPECT_EQ(Read(kStep).gpus, std::nullopt);
}

TEST(SchedulerTest, APodNeedsTheNumberOfNodesOnly) {
  EXPECT_EQ(Added(kPod, {"--nnodes=2"}),
            (Words{"rdzv-backend=c10d (/etc/hosts)",
                   "rdzv-endpoint=train-0.net.default.svc.cluster.local:29400 (/etc/hosts)",
                   "rdzv-id=train (the host's name)"}));
  EXPECT_EQ(Added(kPod), Words{"JOB_COMPLETION_INDEX: this is a pod of an indexed job, which does "
                               "not give the number of pods; want --nnodes N, or --standalone for "
                               "a job in each pod"});
  EXPECT_EQ(Added(kPod, {"--nnodes=1"}), Words{});
  EXPECT_EQ(Added(kPod, {"--standalone"}), Words{});
}

TEST(SchedulerTest, APodWithoutNamesNeedsAnEndpoint) {
  auto error = [](const Variables& variables, const std::string& hosts) {
    auto source = SettingsOfScheduler(Read(variables, hosts), SettingsOf({"--nnodes=2"}));
    return source ? "accepted" : source.error().message;
  };
  EXPECT_EQ(error(kPod, "127.0.0.1 localhost\n10.0.0.5 train-1 # train-1.comment\n"),
            "JOB_COMPLETION_INDEX: without a subdomain (a headless service) other pods have no "
            "names; want one, or --rdzv-endpoint HOST:PORT");
  EXPECT_EQ(error({{"JOB_COMPLETION_INDEX", "2"}}, kPodAddress),
            "JOB_COMPLETION_INDEX: want a host name that ends in -2, got \"train-1\"; or "
            "--rdzv-endpoint HOST:PORT");
  EXPECT_EQ(Added({{"JOB_COMPLETION_INDEX", "2"}},
                  {"--nnodes=3", "--rdzv-backend=c10d", "--rdzv-endpoint=h"}),
            Words{});
}

TEST(SchedulerTest, MpirunGivesNoAddressForTheRendezvous) {
  EXPECT_EQ(Added(kMpi), Words{"OMPI_COMM_WORLD_SIZE: mpirun gives no address for the "
                               "rendezvous; want --rdzv-endpoint HOST:PORT or --master-addr HOST"});
  EXPECT_EQ(Added(kMpi, {"--master-addr=h"}),
            (Words{"nnodes=4 (OMPI_COMM_WORLD_SIZE)", "node-rank=3 (OMPI_COMM_WORLD_RANK)"}));
  EXPECT_EQ(Added(kMpi, {"--rdzv-backend=c10d", "--rdzv-endpoint=h"}),
            Words{"nnodes=4 (OMPI_COMM_WORLD_SIZE)"});
  EXPECT_EQ(Added(With(kMpi, {{"OMPI_COMM_WORLD_SIZE", "1"}})), Words{});
  EXPECT_EQ(Added(With(kMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}})),
            Words{"OMPI_COMM_WORLD_LOCAL_SIZE: mpirun starts rankrun 2 times on this node, but "
                  "rankrun starts the workers itself: want mpirun --map-by ppr:1:node, or "
                  "--standalone for one job per process"});
}

TEST(SchedulerTest, OtherMpisSetTheVariablesOfPmi) {
  Variables pmi = {{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}};
  EXPECT_EQ(Added(pmi, {"--master-addr=h"}),
            (Words{"nnodes=2 (PMI_SIZE)", "node-rank=1 (PMI_RANK)"}));
  EXPECT_EQ(Added(With(pmi, {{"MPI_LOCALNRANKS", "2"}})),
            Words{"MPI_LOCALNRANKS: mpirun starts rankrun 2 times on this node, but "
                  "rankrun starts the workers itself: want mpirun -ppn 1, or --standalone for one "
                  "job per process"});
}

TEST(SchedulerTest, AProcessThatIsPreparedForMpiIsKnown) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_FD"}) {
    EXPECT_TRUE(IsPreparedForMpi(EnvironmentOf({{name, "0"}})));
    EXPECT_TRUE(IsOfMpi(name));
  }
  EXPECT_FALSE(IsPreparedForMpi(EnvironmentOf({{"OMPI_MCA_btl", "tcp"}, {"SLURM_PROCID", "0"}})));
  for (const char* name : {"OMPI", "PMIZ_RANK", "SLURM_PROCID", "MY_PMI_RANK", "PATH"}) {
    EXPECT_FALSE(IsOfMpi(name)) << name;
  }
}

TEST(SchedulerTest, ThereIsAFlagForMoreCpus) {
  EXPECT_EQ(Read(kMpi).more_cpus, "mpirun --bind-to none");
  EXPECT_EQ(Read(kStep).more_cpus, "srun --cpus-per-task N, or --cpu-bind=none");
  EXPECT_EQ(Read({{"SLURM_JOB_ID", "17"}}).more_cpus, "sbatch or salloc with --cpus-per-task N");
  EXPECT_EQ(Read(kPod).more_cpus, "");
}

TEST(SchedulerTest, TheInnermostSchedulerCounts) {
  EXPECT_EQ(Read(With(kStep, kMpi)).nodes->variable, "OMPI_COMM_WORLD_SIZE");
  Variables pmi = With(kStep, {{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}});
  EXPECT_EQ(Read(pmi).nodes->variable, "SLURM_STEP_NUM_NODES");
  EXPECT_EQ(Read(With(pmi, {{"MPI_LOCALNRANKS", "1"}})).nodes->variable, "PMI_SIZE");
}

TEST(SchedulerTest, AWorkerHasNoScheduler) {
  for (const Variables& worker : {Variables{{"RANK", "0"}, {"TORCHELASTIC_RUN_ID", "x"}},
                                  Variables{{"RANKRUN_STATUS_PATH", "/proc/1/fd/3"}}}) {
    EXPECT_EQ(Added(With(kStep, worker)), Words{});
    EXPECT_EQ(Read(With(kStep, worker)).advice, "");
    EXPECT_EQ(Added(With(kMpi, worker)), Words{});
    EXPECT_EQ(Added(With(kPod, worker)), Words{});
  }
  EXPECT_NE(Added(With(kStep, {{"RANK", "0"}})), Words{});
}

TEST(SchedulerTest, WithoutASchedulerThereIsNoAdvice) {
  EXPECT_EQ(Added({}), Words{});
  EXPECT_EQ(Added({}, {"--nnodes=2"}), Words{});
  EXPECT_EQ(AdviceOf(Read({}), SettingsOf({})), "");
}

}  // namespace
}  // namespace rankrun::launcher

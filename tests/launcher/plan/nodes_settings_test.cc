#include "launcher/plan/nodes_settings.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

using agent::Endpoint;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kNoSecret =
    "without a job secret anybody who can connect to the port of this job can join it";

Result<NodesPlan> Try(const Words& flags, const Variables& variables = {},
                      const Scheduler& scheduler = {}) {
  return ReadNodes(SettingsOf(flags, variables),
                   {.scheduler = scheduler,
                    .host_name = "host",
                    .secret = {.environment = EnvironmentOf(variables), .is_optional = true}});
}

NodesPlan Read(const Words& flags, const Variables& variables = {},
               const Scheduler& scheduler = {}) {
  auto plan = Try(flags, variables, scheduler);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? *plan : NodesPlan{};
}

std::string ErrorOf(const Words& flags, const Variables& variables = {}) {
  auto plan = Try(flags, variables);
  if (plan) return "accepted";
  EXPECT_EQ(plan.error().code, ErrorCode::kInvalid);
  return plan.error().message;
}

Words Ignored(const Words& flags, const Variables& variables = {}) {
  Words notes;
  for (const Note& note : Read(flags, variables).rendezvous.ignored) {
    notes.push_back(note.what + ": " + note.why);
  }
  return notes;
}

Words Dynamic(Words more = {}) {
  Words flags = {"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=h"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

Words Static(Words more = {}) {
  Words flags = {"--nnodes=2", "--master-addr=h"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(NodesSettingsTest, TheDynamicBackendMeetsAtTheEndpoint) {
  NodesPlan plan = Read(Dynamic());
  EXPECT_EQ(plan.spec.min, 2);
  EXPECT_EQ(plan.spec.max, 2);
  EXPECT_THAT(plan.spec.endpoints, ElementsAre(Endpoint{"h", 29400}));
  EXPECT_EQ(plan.spec.endpoint_origin, "--rdzv-endpoint");
  EXPECT_EQ(plan.spec.is_host, std::nullopt);
  EXPECT_EQ(plan.spec.node_rank, std::nullopt);
  EXPECT_EQ(plan.spec.node_index, std::nullopt);
  EXPECT_EQ(plan.spec.node_name, "host");
  EXPECT_EQ(plan.spec.local_addr, "");
  EXPECT_FALSE(plan.spec.shares_port);
  EXPECT_EQ(plan.spec.join_timeout, seconds(600));
  EXPECT_EQ(plan.spec.on_lost_node, agent::LostNode::kRestart);
  EXPECT_EQ(plan.spec.replace_after, 2);
  EXPECT_EQ(plan.rendezvous.address, std::nullopt);
  EXPECT_EQ(plan.rendezvous.port, std::nullopt);
  EXPECT_EQ(plan.rendezvous.run_id, "none");
  EXPECT_THAT(plan.rendezvous.ignored, IsEmpty());
}

TEST(NodesSettingsTest, TheDefaultsAreThoseOfTheTable) {
  agent::NodesSpec spec = Read(Dynamic()).spec;
  auto expect = [](milliseconds value, std::string_view name) {
    auto flag = std::ranges::find(Flags(), name, &Flag::name);
    ASSERT_NE(flag, Flags().end());
    EXPECT_EQ(std::to_string(value / seconds(1)), flag->default_value) << name;
  };
  expect(spec.node_timeout, "node-timeout");
  expect(spec.last_call, "last-call");
  expect(spec.finish_timeout, "finish-timeout");
}

TEST(NodesSettingsTest, SeveralHostsMayHaveTheCoordinator) {
  EXPECT_THAT(Read(Dynamic({"--rdzv-endpoint=a, b:1,[::1]"})).spec.endpoints,
              ElementsAre(Endpoint{"a", 29400}, Endpoint{"b", 1}, Endpoint{"::1", 29400}));
  EXPECT_EQ(ErrorOf(Dynamic({"--rdzv-endpoint=a,"})),
            "--rdzv-endpoint: want HOST, HOST:PORT or [IPV6]:PORT, got \"\"");
  EXPECT_EQ(ErrorOf(Dynamic({"--rdzv-endpoint=a:0"})),
            "--rdzv-endpoint: want a fixed port, because all nodes must know it, got \"a:0\"");
  EXPECT_EQ(ErrorOf({"--nnodes=2", "--rdzv-endpoint=a:1,b:1"}),
            "--rdzv-endpoint: want one with --rdzv-backend static, a list is for c10d, got "
            "\"a:1,b:1\"");
}

TEST(NodesSettingsTest, WithoutAnEndpointNodesMeetOnThisHost) {
  NodesPlan plan = Read({"--nnodes=2", "--rdzv-backend=c10d"});
  EXPECT_THAT(plan.spec.endpoints, ElementsAre(Endpoint{"localhost", 29400}));
  EXPECT_THAT(plan.warnings, ElementsAre("without --rdzv-endpoint the nodes meet at "
                                         "localhost:29400, so all of them must be on this host"));
}

TEST(NodesSettingsTest, TheStaticBackendMeetsAtTheMaster) {
  NodesPlan plan = Read(Static({"--node-rank=1", "--master-port=1"}));
  EXPECT_THAT(plan.spec.endpoints, ElementsAre(Endpoint{"h", 1}));
  EXPECT_EQ(plan.spec.endpoint_origin, "--master-addr");
  EXPECT_EQ(plan.spec.is_host, false);
  EXPECT_EQ(plan.spec.node_rank, 1);
  EXPECT_TRUE(plan.spec.shares_port);
  EXPECT_EQ(plan.spec.join_timeout, seconds(900));
  EXPECT_EQ(plan.rendezvous.address, "h");
  EXPECT_EQ(plan.rendezvous.port, 1);
  EXPECT_EQ(plan.rendezvous.address_origin, "--master-addr");
  EXPECT_EQ(plan.rendezvous.port_origin, "--master-port");
  EXPECT_EQ(Read(Static()).spec.is_host, true);
  EXPECT_EQ(Read(Static()).spec.node_rank, 0);
  EXPECT_EQ(ErrorOf(Static({"--master-port=0"})),
            "--master-port: want a fixed port, because all nodes must know it, got \"0\"");
}

TEST(NodesSettingsTest, HostsHaveNoPortAndNoScheme) {
  agent::NodesSpec spec =
      Read({"--nnodes=2", "--master-addr=[fd00::1]", "--local-addr=[fd00::2]"}).spec;
  EXPECT_THAT(spec.endpoints, ElementsAre(Endpoint{"fd00::1", 29500}));
  EXPECT_EQ(spec.local_addr, "fd00::2");
  EXPECT_EQ(ErrorOf({"--nnodes=2"}, {{"PET_MASTER_ADDR", "n1:80"}}),
            "PET_MASTER_ADDR: want HOST or an IPv6 address without a port, got \"n1:80\"; the port "
            "is --master-port 80");
  EXPECT_EQ(ErrorOf({"--nnodes=2", "--master-addr=https://n1/"}),
            "--master-addr: want HOST or an IPv6 address, got \"https://n1/\"");
  EXPECT_EQ(ErrorOf(Dynamic({"--local-addr=10.0.0.2:80"})),
            "--local-addr: want HOST or an IPv6 address without a port, got \"10.0.0.2:80\"");
}

TEST(NodesSettingsTest, TheStaticDefaultsAreTorchruns) {
  NodesPlan plan = Read({"--nnodes=2"});
  EXPECT_THAT(plan.spec.endpoints, ElementsAre(Endpoint{"127.0.0.1", 29500}));
  EXPECT_EQ(plan.rendezvous.address, std::nullopt);
  EXPECT_EQ(plan.rendezvous.port, 29500);
  EXPECT_THAT(plan.warnings, IsEmpty());
  EXPECT_EQ(Read({"--nnodes=1:3"}).spec.min, 3);
}

TEST(NodesSettingsTest, AStaticEndpointIsTheMaster) {
  Words flags = Static({"--rdzv-endpoint=e:5"});
  NodesPlan plan = Read(flags);
  EXPECT_THAT(plan.spec.endpoints, ElementsAre(Endpoint{"e", 5}));
  EXPECT_EQ(plan.spec.endpoint_origin, "--rdzv-endpoint");
  EXPECT_EQ(plan.rendezvous.address, "e");
  EXPECT_EQ(plan.rendezvous.port, 5);
  EXPECT_THAT(Ignored(flags), ElementsAre("--master-addr h: overridden by --rdzv-endpoint"));
  EXPECT_EQ(ErrorOf(Static({"--rdzv-endpoint=e"})),
            "--rdzv-endpoint: the port is missing, want HOST:PORT, got \"e\"");
  EXPECT_THAT(Ignored(Dynamic({"--master-port=7"})),
              ElementsAre("--master-port 7: only --rdzv-backend static uses it"));
}

TEST(NodesSettingsTest, StaticRanksAreBelowTheNumberOfNodes) {
  EXPECT_EQ(ErrorOf(Static({"--node-rank=2"})), "--node-rank: want a rank from 0 to 1, got \"2\"");
  EXPECT_EQ(Read(Static({"--node-rank=1", "--spares=1"})).spec.node_rank, 1);
  EXPECT_EQ(Read(Static({"--rdzv-conf=rank=1"})).spec.node_rank, 1);
  EXPECT_EQ(ErrorOf(Static({"--rdzv-conf=rank=2"})),
            "--rdzv-conf rank: want a rank from 0 to 1, got \"2\"");
  EXPECT_THAT(Ignored(Static({"--rdzv-conf=rank=0,is_host=no", "--node-rank=1"})),
              ElementsAre("--rdzv-conf rank=0: overridden by --node-rank",
                          "--rdzv-conf is_host=no: with --rdzv-backend static the node with rank "
                          "0 is the host"));
  EXPECT_EQ(Read(Dynamic({"--node-rank=7"})).spec.node_rank, 7);
}

TEST(NodesSettingsTest, SparesAreTakenOffTheNodes) {
  struct Row {
    const char* nodes;
    const char* spares;
    int min, max;
  };
  for (const Row& row : {Row{"4", "1", 3, 3}, Row{"2:4", "1", 2, 3}, Row{"2:4", "2", 2, 2},
                         Row{"2", "1", 1, 1}, Row{"4", "0", 4, 4}}) {
    agent::NodesSpec spec = Read(Dynamic({"--nnodes", row.nodes, "--spares", row.spares})).spec;
    EXPECT_EQ(spec.min, row.min);
    EXPECT_EQ(spec.max, row.max);
  }
  EXPECT_EQ(ErrorOf(Dynamic({"--spares=2"})),
            "--spares: 2 of 2 nodes are too many, want at least 1 without them");
  EXPECT_EQ(ErrorOf(Dynamic({"--nnodes=3:4"}), {{"RANKRUN_SPARES", "2"}}),
            "RANKRUN_SPARES: 2 of 4 nodes are too many, want at least 3 without them");
}

TEST(NodesSettingsTest, KeysOfTheConfigurationCount) {
  agent::NodesSpec spec =
      Read(Dynamic({"--rdzv-conf=join_timeout=1,last_call_timeout=2,is_host=True,"
                    "keep_alive_interval=4,keep_alive_max_attempt=2"}))
          .spec;
  EXPECT_EQ(spec.join_timeout, seconds(1));
  EXPECT_EQ(spec.last_call, seconds(2));
  EXPECT_EQ(spec.node_timeout, seconds(8));
  EXPECT_EQ(spec.is_host, true);
  EXPECT_EQ(Read(Dynamic({"--rdzv-conf=keep_alive_interval=2"})).spec.node_timeout, seconds(6));
  EXPECT_EQ(Read(Dynamic({"--rdzv-conf=keep_alive_max_attempt=2"})).spec.node_timeout, seconds(10));
  EXPECT_EQ(Read(Dynamic({"--rdzv-conf=keep_alive_max_attempt=31536000"})).spec.node_timeout,
            seconds(31'536'000));
  EXPECT_EQ(Read(Static({"--rdzv-conf=timeout=3"})).spec.join_timeout, seconds(3));
}

TEST(NodesSettingsTest, FlagsWinOverKeys) {
  Words flags = Dynamic({"--last-call=0", "--node-timeout=0.5",
                         "--rdzv-conf=last_call_timeout=2,keep_alive_interval=4,"
                         "keep_alive_max_attempt=2"});
  EXPECT_EQ(Read(flags).spec.last_call, seconds(0));
  EXPECT_EQ(Read(flags).spec.node_timeout, milliseconds(500));
  EXPECT_THAT(Ignored(flags),
              ElementsAre("--rdzv-conf last_call_timeout=2: overridden by --last-call",
                          "--rdzv-conf keep_alive_interval=4: overridden by --node-timeout",
                          "--rdzv-conf keep_alive_max_attempt=2: overridden by --node-timeout"));
}

TEST(NodesSettingsTest, KeysWithoutAMeaningMayBeAnything) {
  EXPECT_THAT(Ignored(Dynamic({"--rdzv-conf=close_timeout=x,heartbeat_timeout=-1,read_timeout=0,"
                               "store_type=tcp,'foo=1,timeout=soon',rank=x,ssl_cert=/c,"
                               "cas_backoff_max_seconds=x"})),
              ElementsAre("--rdzv-conf rank=x: only --rdzv-backend static uses it",
                          "--rdzv-conf timeout=soon': only --rdzv-backend static uses it; "
                          "want join_timeout",
                          "--rdzv-conf 'foo=1: rankrun has no such key",
                          "--rdzv-conf cas_backoff_max_seconds=x: the nodes do not write into a "
                          "common store",
                          "--rdzv-conf close_timeout=x: the coordinator announces the end at once",
                          "--rdzv-conf heartbeat_timeout=-1: --node-timeout sets when a silent "
                          "node is lost",
                          "--rdzv-conf read_timeout=0: the rendezvous reads from no store",
                          "--rdzv-conf ssl_cert=/c: only the backends etcd and etcd-v2 use it",
                          "--rdzv-conf store_type=tcp: the rendezvous uses TCP"));
  EXPECT_THAT(
      Ignored(
          Static({"--rdzv-conf=join_timeout=x,last_call_timeout=x,is_host=x", "--last-call=1"})),
      ElementsAre("--rdzv-conf is_host=x: with --rdzv-backend static the node with rank "
                  "0 is the host",
                  "--rdzv-conf join_timeout=x: with --rdzv-backend static the key is timeout",
                  "--last-call 1: with --rdzv-backend static the job waits for all nodes",
                  "--rdzv-conf last_call_timeout=x: with --rdzv-backend static the "
                  "job waits for all nodes"));
}

TEST(NodesSettingsTest, NodesDoNotMeetInAFile) {
  const std::string wanted =
      "store_type=file is not supported: several nodes meet at a host, not in a file; want "
      "--rdzv-endpoint HOST[:PORT] without store_type";
  EXPECT_EQ(ErrorOf(Dynamic({"--rdzv-endpoint=/shared/meet", "--rdzv-conf=store_type=file"})),
            "--rdzv-conf: " + wanted);
  EXPECT_EQ(ErrorOf({"--nnodes=1:2", "--rdzv-backend=c10d"},
                    {{"PET_RDZV_CONF", "join_timeout=9,store_type=File"}}),
            "PET_RDZV_CONF: " + wanted);
  EXPECT_EQ(ErrorOf(Dynamic({"--rdzv-conf=store_type=etcd"})),
            "--rdzv-conf: want tcp or file for store_type, got \"etcd\"");
  EXPECT_EQ(ErrorOf(Static({"--rdzv-conf=store_type=file"})), "accepted") << "c10d's alone";
}

TEST(NodesSettingsTest, KeysWithAMeaningAreChecked) {
  for (const char* key :
       {"join_timeout", "last_call_timeout", "keep_alive_interval", "keep_alive_max_attempt"}) {
    for (const char* bad : {"0", "-1", "x", "1.5"}) {
      EXPECT_EQ(ErrorOf(Dynamic({std::string("--rdzv-conf=") + key + "=" + bad})),
                std::string("--rdzv-conf: want a whole number of at least 1 for ") + key +
                    ", got \"" + bad + "\"");
    }
  }
  EXPECT_EQ(ErrorOf(Static(), {{"PET_RDZV_CONF", "timeout=5'"}}),
            "PET_RDZV_CONF: want a whole number of at least 1 for timeout, got \"5'\"");
  EXPECT_EQ(ErrorOf(Static({"--rdzv-conf=rank=-1"})),
            "--rdzv-conf: want a whole number of at least 0 for rank, got \"-1\"");
  EXPECT_EQ(ErrorOf(Dynamic({"--rdzv-conf=is_host=on"})),
            "--rdzv-conf: want true or false for is_host, got \"on\"");
  EXPECT_EQ(ErrorOf(Dynamic({"--rdzv-conf=a"})),
            "--rdzv-conf: the key \"a\" has no value, got \"a\"");
}

TEST(NodesSettingsTest, OurFlagsReachTheSpec) {
  agent::NodesSpec spec =
      Read(Dynamic({"--on-lost-node=stop", "--finish-timeout=60", "--node-timeout=1.5",
                    "--local-addr=10.0.0.2", "--store-strict", "--replace-after=0"}))
          .spec;
  EXPECT_EQ(spec.on_lost_node, agent::LostNode::kStop);
  EXPECT_EQ(spec.replace_after, 0);
  EXPECT_EQ(spec.finish_timeout, seconds(60));
  EXPECT_EQ(spec.node_timeout, milliseconds(1500));
  EXPECT_EQ(spec.local_addr, "10.0.0.2");
  EXPECT_TRUE(spec.store_strict);
  EXPECT_FALSE(Read(Dynamic()).spec.store_strict);
  EXPECT_EQ(ErrorOf(Dynamic({"--node-timeout=0"})),
            "--node-timeout: want more than 0 seconds, got \"0\"");
  EXPECT_EQ(ErrorOf(Dynamic({"--finish-timeout=0"})),
            "--finish-timeout: want more than 0 seconds, got \"0\"");
}

TEST(NodesSettingsTest, SettingsThatNeedOneNodeAreRefused) {
  EXPECT_EQ(ErrorOf({"--nnodes=2", "--standalone"}),
            "--standalone: is for one node, but --nnodes is 2");
  EXPECT_EQ(ErrorOf({"--nnodes=2", "--rdzv-backend=etcd"}),
            "--rdzv-backend: etcd is not supported yet; want static or c10d");
  EXPECT_EQ(ErrorOf(Dynamic({"--rdzv-id=a/b"})),
            "--rdzv-id: want a name without \"/\", because it becomes part of a folder name, got "
            "\"a/b\"");
  EXPECT_EQ(Read(Dynamic({"--rdzv-id=a"})).rendezvous.run_id, "a");
}

TEST(NodesSettingsTest, TheSchedulerGivesThePlaceOfTheNode) {
  Scheduler scheduler;
  scheduler.node_index = SourcedValue<int>{1, "SLURM_NODEID"};
  scheduler.node_name = "n02";
  scheduler.endpoint = SourcedValue<Endpoint>{Endpoint{"h", 29400}, "SLURM_STEP_NODELIST"};
  agent::NodesSpec typed = Read(Dynamic(), {}, scheduler).spec;
  EXPECT_EQ(typed.node_index, 1);
  EXPECT_EQ(typed.node_name, "n02");
  EXPECT_EQ(typed.is_host, std::nullopt);
  scheduler.endpoint->variable = "--rdzv-endpoint";  // as if the setting were the scheduler's
  EXPECT_EQ(Read(Dynamic(), {}, scheduler).spec.is_host, false);
  EXPECT_EQ(Read(Dynamic({"--rdzv-conf=is_host=1"}), {}, scheduler).spec.is_host, true);
  scheduler.node_index->value = 0;
  EXPECT_EQ(Read(Dynamic(), {}, scheduler).spec.is_host, true);
}

TEST(NodesSettingsTest, TheJobHasTheSecretOfItsSettings) {
  NodesPlan plan = Read(Dynamic(), {{"RANKRUN_SECRET", "sixteen bytes ok"}});
  EXPECT_EQ(plan.spec.secret, "sixteen bytes ok");
  EXPECT_EQ(plan.spec.secret_origin, "RANKRUN_SECRET");
  EXPECT_THAT(plan.warnings, IsEmpty());
}

TEST(NodesSettingsTest, AJobWithoutASecretIsAWarningOnTheCoordinatorsNode) {
  EXPECT_THAT(Read(Dynamic()).warnings, ElementsAre(kNoSecret));
  EXPECT_THAT(Read(Dynamic({"--insecure"})).warnings, ElementsAre(kNoSecret));
  EXPECT_THAT(Read(Dynamic({"--rdzv-endpoint=localhost,[::1],127.0.0.2"})).warnings, IsEmpty());
  EXPECT_THAT(Read(Static()).warnings, ElementsAre(kNoSecret));
  EXPECT_THAT(Read(Static({"--node-rank=1"})).warnings, IsEmpty());
}

TEST(NodesSettingsTest, OnOneNodeTheFlagsOfSeveralHaveNoEffect) {
  Words flags = {"--spares=1",         "--node-timeout=1", "--last-call=1",  "--on-lost-node=stop",
                 "--secret-file=gone", "--insecure",       "--store-strict", "--replace-after=1"};
  std::vector<Note> notes = IgnoredOnOneNode(SettingsOf(flags));
  EXPECT_EQ(notes.size(), flags.size());
  EXPECT_EQ(notes[0], (Note{"--spares 1", "the job has one node"}));
}

}  // namespace
}  // namespace rankrun::launcher

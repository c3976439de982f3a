// Errors of nodes that cannot form a job.

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "base/net/host_port.h"
#include "base/net/network_interface.h"
#include "tests/process/nodes.h"

namespace rankrun::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const std::string kOne = "one secret, long enough";
const std::string kAnother = "another one, long enough";

struct NodesStartTest : NodesTest {
  std::string Secret(const std::string& name, const std::string& secret) const {
    std::ofstream(folder.Path(name)) << secret << "\n";
    chmod(folder.Path(name).c_str(), 0600);
    return "--secret-file=" + folder.Path(name);
  }
};

TEST_F(NodesStartTest, NobodyIsAtTheEndpoint) {
  conf = ",join_timeout=1";
  Job& guest = StartGuest({"-n1"}, "exit 0");
  EXPECT_EQ(guest.Wait(), Code(201)) << Errors();
  EXPECT_THAT(guest.Err(), HasSubstr("localhost:" + port)) << Errors();
}

TEST_F(NodesStartTest, AnEndpointThatIsNoNodesAddressNamesTheKey) {
  Job& node = Start({"-n1", "--insecure", "--rdzv-backend=c10d",
                     "--rdzv-endpoint=255.255.255.255:" + port, "--rdzv-conf=join_timeout=1"},
                    "exit 0");
  EXPECT_EQ(node.Wait(), Code(201)) << Errors();
  EXPECT_THAT(node.Err(), ContainsRegex("255.255.255.255 \\(--rdzv-endpoint\\) is no address of "
                                        "this node; .*--rdzv-conf is_host=1 on the node that"));
}

// Returns an address of this host for other hosts; empty if it has none.
std::string AddressForOthers() {
  auto own = InterfaceAddresses();
  if (!own) return "";
  auto is_for_others = [](const std::string& address) {
    return !IsLoopback(address) && !address.starts_with("fe80:");
  };
  auto found = std::ranges::find_if(*own, is_for_others);
  return found == own->end() ? "" : *found;
}

// As a port that is forwarded to the coordinator, but not back to its own host.
TEST_F(NodesStartTest, AnEndpointThatLeadsOnlyOthersToTheHostServesAllNodes) {
  if (AddressForOthers().empty()) GTEST_SKIP() << "this host has only loopback addresses";
  const std::string show = "echo $MASTER_ADDR >$RANK";
  Job& host = StartHost({"-n1", "--node-rank=0", "--insecure", "--max-restarts=0",
                         "--rdzv-endpoint=255.255.255.255:" + port},
                        show);
  Job& guest = StartGuest({"-n1", "--node-rank=1", "--insecure"}, show);
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(0)) << Errors();
  for (const char* rank : {"0", "1"}) EXPECT_EQ(Read(rank), AddressForOthers() + "\n") << Errors();
}

TEST_F(NodesStartTest, TheOthersDoNotCome) {
  conf = ",join_timeout=1";
  Job& host = StartHost({"-n1"}, "exit 0");
  EXPECT_EQ(host.Wait(), Code(201)) << Errors();
  EXPECT_THAT(host.Err(), HasSubstr("gave up waiting for nodes: 1 of 2 nodes are here after 1"));
}

TEST_F(NodesStartTest, TheSecretsDiffer) {
  Job& host = StartHost({"-n1", Secret("a", kOne)}, "exit 0");
  Job& guest = StartGuest({"-n1", Secret("b", kAnother)}, "exit 0");
  EXPECT_EQ(guest.Wait(), Code(201)) << Errors();
  EXPECT_THAT(guest.Err(), HasSubstr("wrong job secret; trying again for up to 5.0 s\n"));
  EXPECT_THAT(guest.Err(), HasSubstr("is from --secret-file: " + folder.Path("b") + "\n"));
  EXPECT_THAT(guest.Err(),
              ContainsRegex("found no coordinator: .*: wrong job secret \\(tried for "));
  host.Signal(SIGINT);
  EXPECT_TRUE(host.Wait().has_value());
}

TEST_F(NodesStartTest, OneHasNoSecret) {
  conf = ",join_timeout=2";
  StartHost({"-n1", Secret("a", kOne)}, "exit 0");
  Job& guest = StartGuest({"-n1"}, "exit 0");
  EXPECT_EQ(guest.Wait(), Code(201)) << Errors();
  EXPECT_THAT(guest.Err(), HasSubstr("secret")) << Errors();
}

// As in containers that have a home each.
TEST_F(NodesStartTest, AJobWhoseNodesHaveMadeASecretEachEnds) {
  const std::string address = AddressForOthers();
  if (address.empty()) GTEST_SKIP() << "this host has only loopback addresses";
  const auto number = static_cast<uint16_t>(std::stoi(port));
  const std::string endpoint = "--rdzv-endpoint=" + HostPortText(address, number);
  variables = {{"container", "test"}, {"XDG_CONFIG_HOME", folder.Path("one")}};
  Job& host = StartHost({"-n1", endpoint}, "exit 0");
  variables["XDG_CONFIG_HOME"] = folder.Path("other");
  Job& guest = StartGuest({"-n1", endpoint}, "exit 0");
  const std::string advice =
      "/rankrun/secret; each container has a home of its own, so give all nodes one secret: "
      "RANKRUN_SECRET or --secret-file\n";
  EXPECT_EQ(guest.Wait(), Code(201)) << Errors();
  EXPECT_THAT(guest.Err(), HasSubstr(folder.Path("other") + advice));
  EXPECT_EQ(host.Wait(), Code(201)) << Errors();
  EXPECT_THAT(host.Err(), ContainsRegex("all other nodes were refused, because they do not have "
                                        "the secret of node [^ ]+, which is from "));
  EXPECT_THAT(host.Err(), HasSubstr(folder.Path("one") + advice));
}

TEST_F(NodesStartTest, TheSameSecretLetsNodesIn) {
  Job& host = StartHost({"-n1", Secret("a", kOne)}, "exit 0");
  Job& guest = StartGuest({"-n1", Secret("b", kOne)}, "exit 0");
  EXPECT_EQ(guest.Wait(), Code(0)) << Errors();
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
}

TEST_F(NodesStartTest, AnotherJobIsAtTheEndpoint) {
  Job& host = StartHost({"-n1", "--rdzv-id=one"}, "exit 0");
  Job& guest = StartGuest({"-n1", "--rdzv-id=another"}, "exit 0");
  EXPECT_EQ(guest.Wait(), Code(201)) << Errors();
  EXPECT_THAT(guest.Err(),
              ContainsRegex("found no coordinator: .*: job \"one\" is there, this node is of job "
                            "\"another\" \\(tried for "));
  host.Signal(SIGINT);
  EXPECT_TRUE(host.Wait().has_value());
}

TEST_F(NodesStartTest, AnotherJobAtTheEndpointMayBeAboutToEnd) {
  Job& former = StartHost({"-n1", "--rdzv-id=one"}, "exit 0");
  Job& guest = StartGuest({"-n1", "--rdzv-id=another"}, "exit 0");
  ASSERT_TRUE(WaitFor([&] { return Count(guest.Err(), "trying again") == 1; })) << Errors();
  former.Signal(SIGINT);
  ASSERT_TRUE(former.Wait().has_value());
  Job& host = StartHost({"-n1", "--rdzv-id=another"}, "exit 0");
  EXPECT_EQ(guest.Wait(), Code(0)) << Errors();
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
}

TEST_F(NodesStartTest, AnOldJobLeavesThePortToTheNextOne) {
  Job& former = StartHost({"-n1", "--rdzv-id=one"}, "exit 0");
  ASSERT_TRUE(WaitFor([&] { return AgentOf(former) != 0; }));
  std::vector<Job*> next;
  for (int i = 0; i < 2; ++i) {
    next.push_back(&Start(
        {"-n1", "--rdzv-id=another", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:" + port},
        "exit 0"));
  }
  for (Job* node : next) {
    ASSERT_TRUE(WaitFor([&] { return Count(node->Err(), "trying again") == 1; })) << Errors();
  }
  former.Signal(SIGINT);
  for (Job* node : next) EXPECT_EQ(node->Wait(), Code(0)) << Errors();
  EXPECT_TRUE(former.Wait().has_value());
}

TEST_F(NodesStartTest, TheNumbersOfNodesDiffer) {
  StartHost({"-n1"}, "exit 0");
  job = {"--nnodes=3"};
  Job& guest = StartGuest({"-n1"}, "exit 0");
  EXPECT_EQ(guest.Wait(), Code(201)) << Errors();
  EXPECT_THAT(guest.Err(), HasSubstr("the coordinator refuses this node: this node was started "
                                     "with --nnodes 3, the job has 2\n"));
}

// The one that joins later is refused; the host hosts in any case.
TEST_F(NodesStartTest, TwoNodesClaimOneRank) {
  job[0] = "--nnodes=4";
  StartHost({"-n1", "--node-rank=0"}, "exit 0");
  for (int i = 0; i < 2; ++i) StartGuest({"-n1", "--node-rank=1"}, "exit 0");
  auto is_over = [&](size_t node) { return nodes[node]->Wait(milliseconds(0)).has_value(); };
  ASSERT_TRUE(WaitFor([&] { return is_over(1) || is_over(2); })) << Errors();
  Job& refused = *nodes[is_over(1) ? 1 : 2];
  EXPECT_EQ(refused.Wait(), Code(201)) << Errors();
  EXPECT_THAT(refused.Err(), ContainsRegex("node rank 1 is claimed by [^ ]+ and by [^ ]+, which "
                                           "joined first\n"));
}

// Only one of two hosts gets the port, also when both try at the same time.
TEST_F(NodesStartTest, TwoNodesOfRankZero) {
  for (int i = 0; i < 20; ++i) {
    nodes.clear();
    std::vector<std::string> flags = {"--master-addr=localhost", "--master-port=" + port,
                                      "--node-rank=0"};
    Job* pair[] = {&Start(flags, "exit 0"), &Start(flags, "exit 0")};
    auto refused = [](Job* node) { return node->Wait(milliseconds(0)) == Code(2); };
    ASSERT_TRUE(WaitFor([&] { return refused(pair[0]) || refused(pair[1]); })) << Errors();
    EXPECT_THAT(Errors(), HasSubstr("--master-port " + port));
    Job* host = refused(pair[0]) ? pair[1] : pair[0];
    EXPECT_FALSE(refused(host)) << Errors();
    host->Signal(SIGINT);
    EXPECT_EQ(host->Wait(), KilledBy(SIGINT)) << Errors();
  }
}

TEST_F(NodesStartTest, AProgramThatIsMissingOnOneNodeIsItsCauseOnAll) {
  Job& host = StartHost({"-n1"}, "exit 0");
  std::vector<std::string> flags = job;
  flags.insert(flags.end(), {"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:" + port,
                             "--rdzv-conf=is_host=0", "--no-python", "./lib.so.missing"});
  Job guest({.arguments = flags});
  EXPECT_EQ(guest.Wait(), Code(127)) << guest.Err();
  host.Signal(SIGINT);
  EXPECT_TRUE(host.Wait().has_value());
}

}  // namespace
}  // namespace rankrun::testing

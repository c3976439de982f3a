// Guardian and agent of a node are killed while its host lives.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/process/nodes.h"

namespace rankrun::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// A worker that lives in the first attempt and succeeds in later ones.
constexpr const char* kSecondTimeLucky = "[ $A = 0 ] || exit 0\nexec sleep 1000";
constexpr const char* kKilled =
    "node [^ ]+ is lost: its rankrun was killed .port [0-9]+ refuses connections.";

struct NodesKilledTest : NodesTest {
  NodesKilledTest() {
    job = {"--nnodes=1:2", "--node-timeout=120", "--last-call=10", "--max-restarts=0"};
  }
};

// The others need not wait for the node timeout: the node's port refuses connections.
TEST_F(NodesKilledTest, AKilledNodeIsDoneWithoutAtOnce) {
  Job& host = StartHost({"-n1"}, Stamped(kSecondTimeLucky));
  Job& guest = StartGuest({"-n1"}, Stamped(kSecondTimeLucky));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  KillHost(guest);
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_TRUE(WaitForUp(1, 1)) << Errors();
  EXPECT_EQ(Overlaps(), "");
  EXPECT_THAT(host.Err(), ContainsRegex(kKilled));
}

// Its agent ends once the guardian is gone.
TEST_F(NodesKilledTest, ANodeWithoutAGuardianIsDoneWithoutAtOnce) {
  Job& host = StartHost({"-n1"}, Stamped(kSecondTimeLucky));
  Job& guest = StartGuest({"-n1"}, Stamped(kSecondTimeLucky));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  guest.Signal(SIGKILL);
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_EQ(Overlaps(), "");
  EXPECT_THAT(host.Err(), ContainsRegex(kKilled));
}

// Workers fail as PyTorch's do: at once, because the lost node's connections close.
TEST_F(NodesKilledTest, WorkersThatLoseAKilledNodeAreNotToBlame) {
  job[0] = "--nnodes=2:3";
  for (const char* rank : {"0", "1"}) {
    ASSERT_EQ(mkfifo(folder.Path("connection." + std::string(rank)).c_str(), 0600), 0);
  }
  const std::string script = Stamped(
      "[ $A = 0 ] || { until [ -e end ]; do sleep 0.01; done; exit 0; }\n"
      "[ $RANK != 2 ] || { exec 3>connection.0 4>connection.1; touch connected; exec sleep 1000; "
      "}\n"
      "cat connection.$RANK\nexit 1");
  Job& host = StartHost({"-n1", "--node-rank=0", "--events=" + folder.Path("events")}, script);
  Job& other = StartGuest({"-n1", "--node-rank=1"}, script);
  Job& killed = StartGuest({"-n1", "--node-rank=2"}, script);
  ASSERT_TRUE(WaitForFiles({"connected"})) << Errors();
  KillHost(killed);
  Touch("end");
  for (Job* node : {&host, &other}) {
    EXPECT_EQ(node->Wait(), Code(0)) << Errors();
    EXPECT_THAT(node->Err(), ContainsRegex(std::string("cause: ") + kKilled));
    EXPECT_THAT(node->Err(), HasSubstr("no restart is used up"));
  }
  EXPECT_TRUE(WaitForUp(2, 1)) << Errors();
  EXPECT_THAT(Read("events"), ContainsRegex(std::string("\"node_lost\".*\"why\":\"") + kKilled));
}

}  // namespace
}  // namespace rankrun::testing

// Runs examples/store: processes that share each kind of store.

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <memory>

#include "base/net/socket_address.h"
#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;

const std::string kMeet = test::Program("meet");

std::vector<std::string> Rank(int rank, std::vector<std::string> more) {
  std::vector<std::string> arguments{"--rank", std::to_string(rank), "--world-size", "2", "--jobs",
                                     "7"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

bool Succeeds(Job& job) {
  return job.Wait(milliseconds(60'000)).value_or(ProcessExit{true, 0}).succeeded();
}

void ExpectTheyMeet(const std::vector<std::string>& of_rank_0,
                    const std::vector<std::string>& of_rank_1) {
  Job other({.arguments = Rank(1, of_rank_1), .program = kMeet});
  Job first({.arguments = Rank(0, of_rank_0), .program = kMeet});
  EXPECT_TRUE(Succeeds(first)) << first.Err();
  EXPECT_TRUE(Succeeds(other)) << other.Err();
  EXPECT_THAT(first.Out(), HasSubstr("all have met: 7 jobs are done"));
  EXPECT_THAT(other.Out(), HasSubstr("rank 1: met 2, the first is process " +
                                     std::to_string(first.pid()) + ","));
}

TEST(StoreExampleTest, WorkersMeetInTheStoreOfTheirAgent) {
  Job job({.arguments = {"-n", "3", kMeet, "--jobs", "7"}});
  EXPECT_TRUE(Succeeds(job)) << job.Err();
  EXPECT_THAT(job.Out(), HasSubstr("all have met: 7 jobs are done"));
}

TEST(StoreExampleTest, ProcessesMeetInAStoreThatOneOfThemHosts) {
  // Reserves the port: only a bind by number can take it now.
  Fd reserved(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int on = 1;
  ASSERT_EQ(setsockopt(reserved.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
  SocketAddress loopback = *SocketAddress::FromNumeric("127.0.0.1", 0);
  ASSERT_EQ(bind(reserved.get(), loopback.raw(), loopback.raw_size()), 0);
  std::string port = std::to_string(SocketAddress::LocalOf(reserved.get())->port());
  ExpectTheyMeet({"--port", port, "--serve"}, {"--port", port});
}

TEST(StoreExampleTest, ProcessesMeetInAFile) {
  ScratchFolder folder;
  std::vector<std::string> file{"--file", folder.Path("store")};
  ExpectTheyMeet(file, file);
}

TEST(StoreExampleTest, AProcessThatIsAloneSaysWhomItMisses) {
  ScratchFolder folder;
  Job job(
      {.arguments = Rank(0, {"--file", folder.Path("store"), "--timeout", "1"}), .program = kMeet});
  EXPECT_EQ(job.Wait(), (ProcessExit{false, 1}));
  EXPECT_THAT(job.Err(), HasSubstr("meet: rank 0: get keys meet/name/0, meet/name/1: "
                                   "key meet/name/1 not set within 1000 ms"));
}

}  // namespace
}  // namespace rankrun::testing

#include <gmock/gmock.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>

#include "tests/agent/control/control_fixture.h"

// A thousand nodes of one coordinator, as sockets of this process.

namespace rankrun::agent {
namespace {

#ifdef RANKRUN_SANITIZED
constexpr bool kIsMeasured = false;  // a sanitizer needs several times as much
#else
constexpr bool kIsMeasured = true;
#endif

constexpr size_t kNodes = 1000;
constexpr rlim_t kDescriptors = 4 * kNodes;

bool MayHaveDescriptors(rlim_t count) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if (limit.rlim_cur >= count) return true;
  if (limit.rlim_max < count) return false;
  limit.rlim_cur = count;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

struct ControlScaleTest : ControlTest {};
struct ControlScaleTimingTest : ControlTest {};

size_t HeapBytes() { return mallinfo2().uordblks; }

// Returns the CPU time of this process, because wall time depends on the load
// of the machine.
Duration Worked() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

TEST_F(ControlScaleTimingTest, AThousandNodesJoinInLessThanTwoSeconds) {
  if (!MayHaveDescriptors(kDescriptors)) {
    GTEST_SKIP() << "fewer than " << kDescriptors << " descriptors are allowed";
  }
  // Real nodes have different addresses.
  NotingServer server(loop, {.job_id = "job",
                             .secret = "secret",
                             .handshakes = {.in_all = kNodes, .per_network = kNodes}});
  ASSERT_TRUE(server.Listen());
  std::vector<std::unique_ptr<NotingLink>> links;
  TimePoint begin = MonotonicClock().Now();
  Duration worked = Worked();
  for (size_t i = 0; i < kNodes; ++i) {
    links.push_back(std::make_unique<NotingLink>(loop, std::vector{server.endpoint()}, "secret"));
  }
  ASSERT_TRUE(Eventually([&] {
    return server.hellos.size() == kNodes &&
           std::ranges::all_of(links, [](const auto& link) { return (*link)->is_up(); });
  }));
  Duration took = MonotonicClock().Now() - begin;
  RecordProperty("join_ms", std::to_string(took / std::chrono::milliseconds(1)));
  if (kIsMeasured) {
    EXPECT_LT(Worked() - worked, std::chrono::seconds(2));
  }
  for (const auto& [id, hello] : server.hellos) server->Send(id, "go");
  EXPECT_TRUE(Eventually([&] {
    return std::ranges::all_of(links, [](const auto& link) { return link->messages.size() == 1; });
  }));
}

// The nodes are plain sockets, so that the heap has only the server's data.
TEST_F(ControlScaleTest, AnIdleNodeTakesTheServerLessThanFourKib) {
  if (!MayHaveDescriptors(kDescriptors)) {
    GTEST_SKIP() << "fewer than " << kDescriptors << " descriptors are allowed";
  }
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  std::vector<Fd> clients;
  JobSecret none("");
  size_t before = HeapBytes();
  for (size_t i = 0; i < kNodes; ++i) {
    clients.push_back(test::ConnectTo(server.address()));
    Greet(clients.back(), none, std::string(1000, 'h'));
    ASSERT_EQ(server.hellos.size(), i + 1);
    server.hellos.back().second = {};
  }
  size_t each = (HeapBytes() - before) / kNodes;
  RecordProperty("bytes_each", std::to_string(each));
  if (kIsMeasured) {
    EXPECT_LT(each, 4096u);
  }
}

}  // namespace
}  // namespace rankrun::agent

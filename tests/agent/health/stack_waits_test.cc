#include "agent/health/stack_waits.h"

#include <gmock/gmock.h>

namespace rankrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

RankDigest In(int rank, const std::string& call) {
  return {rank, {.is_known = true, .collective = call, .place = "x (y.py)", .call = call}};
}

RankDigest Elsewhere(int rank) {
  return {rank, {.is_known = true, .place = "sleep() <- load (train.py:7)"}};
}

RankDigest Dials(int rank, Dial dial, const std::string& address) {
  RankDigest digest = In(rank, "init_process_group");
  digest.digest.dial = dial;
  digest.digest.address = address;
  return digest;
}

const std::map<int, std::string> kDoing = {
    {0, "waiting for a lock (futex)"}, {1, "sleeping (clock_nanosleep)"}, {2, "stopped (SIGSTOP)"}};

TEST(VisibleWaitsTest, RanksInACollectiveWaitForTheOthers) {
  EXPECT_THAT(VisibleWaits({}, {In(0, "all_reduce"), Elsewhere(1), In(2, "all_reduce")}, kDoing),
              ElementsAre("ranks 0, 2 wait in all_reduce for rank 1, which is sleeping "
                          "(clock_nanosleep), in sleep() <- load (train.py:7)"));
  EXPECT_THAT(VisibleWaits({}, {In(0, "barrier"), Elsewhere(1), Elsewhere(2)}, kDoing),
              ElementsAre("rank 0 waits in barrier for ranks 1, 2: rank 1 is sleeping "
                          "(clock_nanosleep), in sleep() <- load (train.py:7); rank 2 is stopped "
                          "(SIGSTOP), in sleep() <- load (train.py:7)"));
}

TEST(VisibleWaitsTest, RanksInDifferentCollectivesAreListed) {
  EXPECT_THAT(VisibleWaits({}, {In(0, "all_reduce"), In(1, "barrier"), In(2, "all_reduce")}, {}),
              ElementsAre("ranks 0, 2 are in all_reduce, rank 1 is in barrier"));
  EXPECT_THAT(VisibleWaits({}, {In(0, "barrier"), In(1, "barrier")}, {}),
              ElementsAre("ranks 0, 1 are in barrier, and none is seen to be late"));
}

TEST(VisibleWaitsTest, RanksInNoCollectiveShowNothing) {
  EXPECT_THAT(VisibleWaits({}, {Elsewhere(0), Elsewhere(1)}, kDoing), IsEmpty());
  EXPECT_THAT(VisibleWaits({}, {{0, {}}, {1, {}}}, kDoing), IsEmpty()) << "unknown stacks";
}

TEST(VisibleWaitsTest, ADialThatIsRefusedHasAHint) {
  EXPECT_THAT(VisibleWaits({},
                           {Dials(0, Dial::kRefused, "127.0.0.1:12355"),
                            Dials(1, Dial::kRefused, "127.0.0.1:12355")},
                           {}),
              ElementsAre("ranks 0, 1 dial 127.0.0.1:12355, where nobody listens: each rank must "
                          "use the address that rank 0 serves; use init_method=\"env://\" (the "
                          "default) under a launcher"));
}

TEST(VisibleWaitsTest, OthersWaitForARankThatDials) {
  const auto waits =
      VisibleWaits({}, {In(0, "barrier"), Dials(1, Dial::kRefused, "[::1]:7")}, kDoing);
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_TRUE(waits[0].starts_with("rank 1 dials [::1]:7, where nobody listens"));
  EXPECT_EQ(waits[1], "rank 0 waits in barrier for rank 1, which is dialling [::1]:7");
}

TEST(VisibleWaitsTest, ADialThatIsNotAnsweredIsShownOnce) {
  const std::string text =
      "rank 1 dials 10.0.0.9:7, which does not answer: is the address right, and does a firewall "
      "let it pass?";
  const std::vector<WorkerSample> samples = {{.global_rank = 1, .dials = {"10.0.0.9:7"}}};
  EXPECT_THAT(VisibleWaits(samples, {}, {}), ElementsAre(text));
  EXPECT_THAT(VisibleWaits(samples, {Dials(1, Dial::kUnanswered, "node9:7")}, {}),
              ElementsAre(text));
  EXPECT_THAT(VisibleWaits({}, {Dials(1, Dial::kUnanswered, "10.0.0.9:7")}, {}), ElementsAre(text));
}

TEST(VisibleWaitsTest, AConnectionShowsTheOtherRank) {
  const PeerWait of_peer{.global_rank = 0, .address = "127.0.0.1:9"};
  const PeerWait of_server{.global_rank = 0, .address = "127.0.0.1:9", .is_server = true};
  EXPECT_THAT(VisibleWaits({{.global_rank = 1, .peer_wait = of_peer}}, {}, {}),
              ElementsAre("rank 1 waits for data of rank 0"));
  EXPECT_THAT(VisibleWaits({{.global_rank = 0, .peer_wait = of_server},
                            {.global_rank = 1, .peer_wait = of_server}},
                           {}, {}),
              ElementsAre("ranks 0, 1 wait for an answer of rank 0, which serves 127.0.0.1:9"));
  PeerWait guess = of_server;
  guess.is_guess = true;
  const std::vector<WorkerSample> polls = {{.global_rank = 1, .peer_wait = guess}};
  EXPECT_THAT(VisibleWaits(polls, {}, {}), IsEmpty());
  EXPECT_THAT(VisibleWaits(polls, {In(1, "c10d::TCPStore::get"), Elsewhere(0)}, {}),
              ElementsAre(StartsWith("rank 1 waits in c10d::TCPStore::get for rank 0, which is "),
                          "rank 1 waits for an answer of rank 0, which serves 127.0.0.1:9"));
  EXPECT_THAT(VisibleWaits({{.global_rank = 1, .peer_wait = of_peer}}, {In(1, "recv")}, kDoing),
              ElementsAre("rank 1 is in recv, and none is seen to be late"))
      << "the call says it already";
}

TEST(DigestTest, ADialIsThatOfAFrameWithAnAddress) {
  const auto digest = [](const std::string& call) {
    const auto frame = [](const std::string& function, const std::string& file) {
      StackFrame frame;
      frame.function = function;
      frame.file = file;
      return frame;
    };
    StackFrame store = frame("_create_c10d_store", "/venv/torch/distributed/rendezvous.py");
    store.address = "127.0.0.1:12355";
    const StackFrame init = frame("init_process_group", "/torch/distributed/distributed_c10d.py");
    const StackFrame wrapper = frame("wrapper", "/torch/distributed/c10d_logger.py");
    const StackFrame main = frame("main", "/job/train.py");
    ThreadStack thread{.tid = 7, .system_call = call, .python = {store, init, wrapper, main}};
    return DigestOf({.pid = 7, .interpreter = "python3", .threads = {thread}});
  };
  EXPECT_EQ(digest("clock_nanosleep").dial, Dial::kRefused);
  EXPECT_EQ(digest("clock_nanosleep").address, "127.0.0.1:12355");
  EXPECT_EQ(digest("clock_nanosleep").call, "init_process_group");
  EXPECT_EQ(digest("restart_syscall").dial, Dial::kNone);
  EXPECT_EQ(digest("poll").dial, Dial::kUnanswered);
  EXPECT_EQ(digest("recvfrom").dial, Dial::kNone) << "it is connected";
}

StackFrame Native(const std::string& function) {
  StackFrame frame;
  frame.function = function;
  return frame;
}

TEST(DigestTest, ADialFromTheProgramIsKnownByItsNativeFrames) {
  StackFrame caller = Native("connect");
  caller.file = "/job/train.py";
  caller.line = 4;
  ThreadStack thread{
      .tid = 7,
      .native = {Native("clock_nanosleep"), Native("__nanosleep"),
                 Native("c10d::detail::(anonymous namespace)::SocketConnectOp::run()"),
                 Native("c10d::TCPStore::TCPStore(std::string)")},
      .python = {caller}};
  const auto digest = [&] {
    return DigestOf({.pid = 7, .interpreter = "python3", .threads = {thread}});
  };
  EXPECT_EQ(digest().dial, Dial::kRefused);
  EXPECT_EQ(digest().address, "a store, in connect (train.py:4)");
  thread.native = {Native("__poll"), Native("c10d::detail::Socket::connect(std::string const&)")};
  EXPECT_EQ(digest().dial, Dial::kUnanswered);
  thread.native = {Native("__poll"), Native("c10d::detail::SocketImpl::waitForInput(long)")};
  thread.python[0].address = "127.0.0.1:12355";
  EXPECT_EQ(digest().dial, Dial::kNone) << "it is connected";
}

}  // namespace
}  // namespace rankrun::agent

// Control connections: whether a call has a result, by what peers have sent.

#include "comm/stream/control.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "tests/comm/stream/message_ranks.h"

namespace rankrun::comm::stream {
namespace {

using testing::HasSubstr;

constexpr uint8_t kFailed = 1 + static_cast<uint8_t>(ErrorCode::kPeerLost);

struct ControlTest : testing::Test {
  void Enter(uint64_t number) {
    ASSERT_TRUE(control().Enter({.kind = Operation::Kind::kBarrier, .number = number}, 1));
  }
  std::string Conclude(std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    auto ok = control().Conclude(MonotonicClock().Now() + limit);
    return ok ? "result" : ok.error().message;
  }
  void Writes(int peer, const FrameHeader& header, const std::string& text = "") {
    WriteAll(ranks.ends[static_cast<size_t>(peer)], FrameBytes(header, text));
  }
  void Fails(int peer, uint64_t number) {
    Writes(peer, {.kind = FrameKind::kFarewell, .code = kFailed, .number = number}, "no luck");
  }
  Control& control() { return ranks.rank->control; }

  RankAmongSockets ranks{3};
};

TEST_F(ControlTest, ACallThatFailsOnAPeerHasNoResult) {
  Enter(1);
  EXPECT_EQ(Conclude(), "result");
  Fails(1, 2);
  Enter(2);
  EXPECT_EQ(Conclude(), "no luck");
}

TEST_F(ControlTest, AFailureInALaterCallDoesNotCount) {
  Enter(1);
  Fails(2, 2);
  EXPECT_EQ(Conclude(), "result");
  Enter(2);
  EXPECT_EQ(Conclude(), "no luck");
}

TEST_F(ControlTest, AFarewellHasTheFirstCallWithoutAResult) {
  Enter(6);
  EXPECT_EQ(Conclude(), "result");
  Enter(7);
  {
    MutexLock lock(control().mutex());
    control().End({ErrorCode::kTimeout, "late"}, {ErrorCode::kPeerLost, "late"});
  }
  const std::string sent = ReadAll(ranks.ends[1]);
  FrameHeader header;
  ASSERT_GE(sent.size(), sizeof header);
  std::memcpy(&header, sent.data(), sizeof header);
  EXPECT_EQ(header.kind, FrameKind::kFarewell);
  EXPECT_EQ(header.number, 7U);
}

TEST_F(ControlTest, AResultWaitsForAPeerThatMayGiveUp) {
  for (bool continues : {true, false}) {
    Enter(1);
    Writes(1, {.kind = FrameKind::kProbe});
    std::jthread peer([&] {
      while (ReadAll(ranks.ends[1]).empty()) std::this_thread::yield();  // the answer
      if (continues) Writes(1, {.kind = FrameKind::kContinue});
      if (!continues) Fails(1, 1);
    });
    EXPECT_EQ(Conclude(), continues ? "result" : "no luck");
  }
}

TEST_F(ControlTest, APeerThatDoesNotDecideLeavesNoResult) {
  Enter(1);
  Writes(1, {.kind = FrameKind::kProbe});
  EXPECT_THAT(Conclude(std::chrono::milliseconds(1)),
              HasSubstr("rank 1 may have given up, and does not answer"));
}

}  // namespace
}  // namespace rankrun::comm::stream

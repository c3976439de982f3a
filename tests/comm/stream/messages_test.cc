#include "comm/stream/messages.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "comm/stream/limits.h"
#include "tests/comm/backend_calls.h"
#include "tests/comm/stream/message_ranks.h"
#include "tests/comm/transport/group.h"

namespace rankrun::comm::stream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using transport::BackendGroup;
using transport::TestCall;

// Frame of a message that rank 0 receives.
std::string ShortMessage(const std::string& text, uint64_t tag = 0) {
  return FrameBytes({.kind = FrameKind::kMessage,
                     .dtype = static_cast<uint8_t>(DType::kUInt8),
                     .number = 1,
                     .count = text.size(),
                     .tag = tag},
                    text);
}

// Frame of a failure of another rank.
std::string Failure(const std::string& text) {
  return FrameBytes({.kind = FrameKind::kFarewell,
                     .code = static_cast<uint8_t>(1 + static_cast<int>(ErrorCode::kPeerLost))},
                    text);
}
std::string Leaving(const std::string& text) {
  return FrameBytes({.kind = FrameKind::kFarewell, .code = 0}, text);
}

TEST(TcpMessagesTest, AShortMessageIsSentWithoutItsReceiver) {
  for (size_t bytes : {size_t{0}, size_t{1}, kMaxEagerBytes}) {
    RankPair ranks;
    const std::string text = Text(bytes);
    auto send = ranks.zero.Send(text, 1);
    EXPECT_TRUE(send->Test()) << bytes;
    std::string got(bytes, '?');
    EXPECT_THAT(Ended({ranks.one.Recv(got, 0).get()}), ElementsAre("ok"));
    EXPECT_TRUE(got == text) << bytes;
  }
}

TEST(TcpMessagesTest, ALongMessageWaitsForItsReceiver) {
  for (size_t bytes :
       {kMaxEagerBytes + 1, kPieceBytes - 1, kPieceBytes, kPieceBytes + 1, 3 * kPieceBytes + 77}) {
    RankPair ranks;
    const std::string text = Text(bytes);
    auto send = ranks.zero.Send(text, 1);
    for (int i = 0; i < 10; ++i) {
      ranks.one.Move();
      EXPECT_FALSE(send->Test()) << bytes;
    }
    std::string got(bytes, '?');
    auto recv = ranks.one.Recv(got, 0);
    EXPECT_THAT(Ended({send.get(), recv.get()}), Each("ok"));
    EXPECT_TRUE(got == text) << bytes;
  }
}

TEST(TcpMessagesTest, ShortAndLongMessagesKeepTheirOrder) {
  RankPair ranks;
  std::vector<std::string> texts;
  for (size_t bytes : {10U, 100'000U, 20U, 2'000'000U, 0U, 65'536U, 65'537U, 5U}) {
    texts.push_back(Text(bytes, bytes));
  }
  for (bool recv_first : {false, true}) {
    std::vector<std::unique_ptr<Transfer>> transfers;
    std::vector<std::string> got;
    for (const auto& text : texts) got.emplace_back(text.size(), '?');
    auto send_all = [&] {
      for (const auto& text : texts) transfers.push_back(ranks.zero.Send(text, 1));
      ranks.one.Move();
    };
    if (!recv_first) send_all();
    for (auto& text : got) transfers.push_back(ranks.one.Recv(text, std::nullopt));
    if (recv_first) send_all();
    std::vector<Transfer*> all;
    for (const auto& transfer : transfers) all.push_back(transfer.get());
    EXPECT_THAT(Ended(all), Each("ok"));
    EXPECT_TRUE(got == texts);
  }
}

TEST(TcpMessagesTest, FirstUnexpectedIsAMessageOfAnotherTag) {
  for (size_t bytes : {size_t{10}, kMaxEagerBytes + 1}) {
    RankPair ranks;
    const std::string text = Text(bytes);
    auto send = ranks.zero.Send(text, 1, 7);
    std::string never(bytes, '?');
    auto recv = ranks.one.Recv(never, 0, 8);
    EXPECT_FALSE(recv->Test());
    auto unexpected = recv->FirstUnexpected();
    ASSERT_TRUE(unexpected);
    EXPECT_EQ(unexpected->source, 0);
    EXPECT_EQ(unexpected->tag, 7U);
    auto right = ranks.one.Recv(never, 0, 7);
    EXPECT_THAT(Ended({send.get(), right.get()}), Each("ok"));
    EXPECT_FALSE(recv->FirstUnexpected());
    ranks.one.messages.Stop({ErrorCode::kCancelled, "over"});
  }
}

TEST(TcpMessagesTest, AReceiveTakesAMessageWhoseDataIsStillArriving) {
  const std::string frame = ShortMessage(Text(1000));
  for (size_t arrived : {size_t{1}, sizeof(FrameHeader) - 1, sizeof(FrameHeader),
                         sizeof(FrameHeader) + 1, size_t{500}, frame.size() - 1, frame.size()}) {
    RankAmongSockets group(2);
    WriteAll(group.ends[1], frame.substr(0, arrived));
    group.rank->Move();
    std::string got(1000, '?');
    auto recv = group.rank->Recv(got, 1);
    EXPECT_EQ(recv->Test(), arrived == frame.size());
    WriteAll(group.ends[1], frame.substr(arrived));
    EXPECT_THAT(Ended({recv.get()}), ElementsAre("ok"));
    EXPECT_EQ(got, Text(1000)) << arrived;
  }
}

TEST(TcpMessagesTest, AReceiveThatDoesNotFitLeavesTheNextMessageWhole) {
  const std::string frame = ShortMessage(Text(1000));
  for (size_t arrived : {size_t{0}, sizeof(FrameHeader), size_t{500}, frame.size()}) {
    RankAmongSockets group(2);
    WriteAll(group.ends[1], frame.substr(0, arrived));
    group.rank->Move();
    std::string small(999, '?');
    std::string got(1000, '?');
    auto refused = group.rank->Recv(small, 1);
    auto next = group.rank->Recv(got, 1);
    WriteAll(group.ends[1], frame.substr(arrived) + ShortMessage(Text(1000, 2)));
    EXPECT_THAT(Ended({refused.get(), next.get()}),
                ElementsAre("rank 1 sends 1000 x uint8 with tag 0 to rank 0, which expects 999 x "
                            "uint8",
                            "ok"));
    EXPECT_EQ(small, std::string(999, '?'));
    EXPECT_EQ(got, Text(1000, 2)) << arrived;
  }
}

TEST(TcpMessagesTest, AReceiveFromAnyRankGoesOnWhileOnePeerIsThere) {
  RankAmongSockets group(3);
  std::string got(10, '?');
  auto recv = group.rank->Recv(got, std::nullopt);
  group.ends[2].Reset();
  auto result = recv->Wait(milliseconds(100));  // longer than a farewell may take
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kTimeout);
  WriteAll(group.ends[1], ShortMessage(Text(10)));
  EXPECT_THAT(Ended({recv.get()}), ElementsAre("ok"));
  EXPECT_EQ(recv->source(), 1);
  EXPECT_EQ(got, Text(10));
}

TEST(TcpMessagesTest, AReceiveFromAnyRankEndsWithTheLastPeer) {
  RankAmongSockets group(3);
  std::string got(10, '?');
  auto recv = group.rank->Recv(got, std::nullopt);
  WriteAll(group.ends[2], Leaving("rank 2 has left the group"));
  group.ends[2].Reset();
  EXPECT_FALSE(recv->Test());
  group.ends[1].Reset();
  auto result = recv->Wait(seconds(60));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(result.error().message, "lost rank 1: the connection was closed");
}

TEST(TcpMessagesTest, AMessageThatArrivedBeforeTheLossIsReceived) {
  RankAmongSockets group(2);
  WriteAll(group.ends[1], ShortMessage(Text(10), 1) + ShortMessage(Text(10, 2), 2));
  group.ends[1].Reset();
  std::string first(10, '?');
  auto recv = group.rank->Recv(first, 1, 1);
  EXPECT_THAT(Ended({recv.get()}), ElementsAre("ok"));
  std::string second(10, '?');
  auto next = group.rank->Recv(second, 1, 2);
  EXPECT_THAT(Ended({next.get()}), ElementsAre("ok"));
  auto never = group.rank->Recv(first, 1, 3);
  EXPECT_THAT(Ended({never.get()}), ElementsAre("lost rank 1: the connection was closed"));
}

TEST(TcpMessagesTest, ASendToALostRankEnds) {
  for (size_t bytes : {size_t{10}, kMaxEagerBytes + 1}) {
    RankAmongSockets group(2);
    group.ends[1].Reset();
    const std::string text = Text(bytes);
    auto send = group.rank->Send(text, 1);
    EXPECT_THAT(Ended({send.get()}), ElementsAre(HasSubstr("lost rank 1: ")));
  }
}

// A failed group stays connected for a moment, until it is aborted.
TEST(TcpMessagesTest, AReceiveThatHasFailedIsNotWrittenAnyMore) {
  const std::string frame = ShortMessage(Text(1000));
  for (size_t arrived : {sizeof(FrameHeader), size_t{500}}) {
    RankAmongSockets group(3);
    std::string got(1000, '?');
    auto recv = group.rank->Recv(got, 1);
    WriteAll(group.ends[1], frame.substr(0, arrived));
    group.rank->Move();
    WriteAll(group.ends[2], Failure("rank 2 failed"));
    EXPECT_THAT(Ended({recv.get()}), ElementsAre("rank 2 failed"));
    got.assign(1000, '-');  // the program may use its memory again
    WriteAll(group.ends[1], frame.substr(arrived));
    group.rank->Move();
    EXPECT_TRUE(got == std::string(1000, '-')) << arrived;
  }
}

TEST(TcpMessagesTest, ALongReceiveThatHasFailedIsNotWrittenAnyMore) {
  RankAmongSockets group(3);
  std::string got(100'000, '?');
  auto recv = group.rank->Recv(got, 1);
  WriteAll(group.ends[1], FrameBytes({.kind = FrameKind::kOffer,
                                      .dtype = static_cast<uint8_t>(DType::kUInt8),
                                      .number = 1,
                                      .count = got.size()}));
  const std::string frame =
      FrameBytes({.kind = FrameKind::kMessageData, .number = 1}, Text(got.size()));
  WriteAll(group.ends[1], frame.substr(0, 50'000));
  group.rank->Move();
  WriteAll(group.ends[2], Failure("rank 2 failed"));
  EXPECT_THAT(Ended({recv.get()}), ElementsAre("rank 2 failed"));
  got.assign(100'000, '-');
  WriteAll(group.ends[1], frame.substr(50'000));
  group.rank->Move();
  EXPECT_TRUE(got == std::string(100'000, '-'));
}

TEST(TcpMessagesTest, ASendThatHasFailedIsNotReadAnyMore) {
  RankAmongSockets group(3);
  std::string text(kPieceBytes, 'a');
  auto send = group.rank->Send(text, 1);
  EXPECT_FALSE(send->Test());
  WriteAll(group.ends[1], FrameBytes({.kind = FrameKind::kAccept,
                                      .dtype = static_cast<uint8_t>(DType::kUInt8),
                                      .number = 1,
                                      .count = text.size()}));
  EXPECT_FALSE(send->Test()) << "the buffer is full";
  WriteAll(group.ends[2], Failure("rank 2 failed"));
  EXPECT_THAT(Ended({send.get()}), ElementsAre("rank 2 failed"));
  text.assign(kPieceBytes, 'b');  // the program may use its memory again
  std::string arrived;
  for (std::string part = ReadAll(group.ends[1]); !part.empty(); part = ReadAll(group.ends[1])) {
    arrived += part;
    group.rank->Move();
  }
  EXPECT_GT(arrived.size(), 2 * sizeof(FrameHeader));
  EXPECT_EQ(arrived.substr(2 * sizeof(FrameHeader)).find('b'), std::string::npos);
}

// Checks that a message arrives while its other side is in a collective.
void CheckMovesInABarrier(bool sender_is_in_barrier) {
  constexpr size_t kBytes = size_t{3} << 20;
  BackendGroup("tcp", 2).Run([&](Backend& backend, int rank) {
    std::vector<std::byte> values(kBytes, std::byte(rank == 0 ? 7 : 1));
    constexpr Envelope kEnvelope{.tag = 3, .dtype = DType::kUInt8};
    auto transfer = rank == 0 ? backend.StartSend({values.data(), kBytes}, 1, kEnvelope)
                              : backend.StartRecv({values.data(), kBytes}, 0, kEnvelope);
    TestCall call({.kind = Operation::Kind::kBarrier, .number = 1});
    if (sender_is_in_barrier == (rank == 0)) {
      EXPECT_TRUE(Barrier(backend, call.call));
      EXPECT_TRUE((*transfer)->Test());
    } else {
      EXPECT_TRUE((*transfer)->Wait(seconds(60)));
      EXPECT_TRUE(Barrier(backend, call.call));
    }
    EXPECT_TRUE(values == std::vector<std::byte>(kBytes, std::byte(7)));
  });
}

TEST(TcpMessagesTest, AMessageIsSentWhileItsSenderIsInACollective) { CheckMovesInABarrier(true); }
TEST(TcpMessagesTest, AMessageIsReceivedWhileItsReceiverIsInACollective) {
  CheckMovesInABarrier(false);
}

TEST(TcpMessagesTest, AMessageAndCollectivesWithDataPassEachOther) {
  constexpr size_t kBytes = size_t{3} << 20;
  BackendGroup("tcp", 2).Run([&](Backend& backend, int rank) {
    std::vector<std::byte> values(kBytes, std::byte(rank == 0 ? 7 : 1));
    constexpr Envelope kEnvelope{.tag = 3, .dtype = DType::kUInt8};
    auto transfer = rank == 0 ? backend.StartSend({values.data(), kBytes}, 1, kEnvelope)
                              : backend.StartRecv({values.data(), kBytes}, 0, kEnvelope);
    std::vector<int> sums(kBytes / sizeof(int), 1);
    for (uint64_t number = 1; number <= 5; ++number) {
      TestCall call({.kind = Operation::Kind::kAllReduce,
                     .dtype = DType::kInt32,
                     .count = sums.size(),
                     .number = number});
      EXPECT_TRUE(AllReduce(backend, transport::Bytes(sums), sums.size(),
                            {DType::kInt32, ReduceOp::kSum}, call.call));
    }
    EXPECT_TRUE(sums == std::vector<int>(sums.size(), 32));
    EXPECT_TRUE((*transfer)->Wait(seconds(60)));
    EXPECT_TRUE(values == std::vector<std::byte>(kBytes, std::byte(7)));
  });
}

}  // namespace
}  // namespace rankrun::comm::stream

#include "comm/stream/channel.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "comm/stream/limits.h"
#include "tests/comm/stream/socket_pair.h"

namespace rankrun::comm::stream {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kUnknown[] = "it sent a frame that this version does not know";

FrameHeader Header(FrameKind kind, uint64_t number) { return {.kind = kind, .number = number}; }

// Records what a channel reports.
struct RecordingHandler final : FrameHandler {
  std::byte* SpaceFor(int, const FrameHeader& header) override {
    data.assign(header.bytes, '?');
    if (on_space) on_space();
    bool is_discarded = std::exchange(discards_next, false);
    return is_discarded ? nullptr : reinterpret_cast<std::byte*>(data.data());
  }
  void OnFrame(int peer, const FrameHeader& header) override {
    EXPECT_EQ(peer, 5);
    numbers.push_back(header.number);
    texts.push_back(std::exchange(data, ""));
    if (on_frame) on_frame();
  }
  void OnWritten(int peer, const OutgoingFrame& frame) override {
    EXPECT_EQ(peer, 5);
    written.push_back(frame.header.number);
    if (on_written) on_written();
  }

  std::function<void()> on_space, on_frame, on_written;
  bool discards_next = false;
  std::string data;  // of the frame under way
  std::vector<uint64_t> numbers;
  std::vector<std::string> texts;
  std::vector<uint64_t> written;
};

// A channel to peer 5. The test holds the other end.
struct ChannelTest : testing::Test {
  void Queue(FrameKind kind, uint64_t number, const std::string& text) {
    auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    channel.Queue({.header = Header(kind, number), .owned = {bytes, bytes + text.size()}});
  }

  SocketPair pair;
  const Fd peer{std::move(pair.other)};
  RecordingHandler handler;
  Channel channel{ConnectionOver(std::move(pair.one)), 5, handler};
};

const std::string kThreeFrames = FrameBytes(Header(FrameKind::kMessage, 1), "five!") +
                                 FrameBytes(Header(FrameKind::kAccept, 2)) +
                                 FrameBytes(Header(FrameKind::kMessageData, 3), Text(100));

TEST_F(ChannelTest, FramesArriveThoughEachByteComesAlone) {
  for (char byte : kThreeFrames) {
    WriteAll(peer, std::string(1, byte));
    EXPECT_TRUE(channel.Read());
  }
  EXPECT_FALSE(channel.Read());
  EXPECT_THAT(handler.numbers, ElementsAre(1, 2, 3));
  EXPECT_THAT(handler.texts, ElementsAre("five!", "", Text(100)));
}

TEST_F(ChannelTest, FramesMayBeSplitAtEveryByte) {
  for (size_t split = 1; split < kThreeFrames.size(); ++split) {
    handler.numbers.clear();
    handler.texts.clear();
    WriteAll(peer, kThreeFrames.substr(0, split));
    channel.Read();
    WriteAll(peer, kThreeFrames.substr(split));
    channel.Read();
    EXPECT_THAT(handler.numbers, ElementsAre(1, 2, 3)) << split;
    EXPECT_THAT(handler.texts, ElementsAre("five!", "", Text(100))) << split;
  }
}

TEST_F(ChannelTest, SeveralFramesInOneReadArriveInOrder) {
  std::string all;
  for (uint64_t i = 0; i < 300; ++i) {
    all += FrameBytes(Header(FrameKind::kMessage, i), Text(i % 7 * 50, i));
  }
  WriteAll(peer, all);
  EXPECT_TRUE(channel.Read());
  ASSERT_EQ(handler.numbers.size(), 300U);
  for (uint64_t i = 0; i < 300; ++i) {
    EXPECT_EQ(handler.numbers[i], i);
    EXPECT_EQ(handler.texts[i], Text(i % 7 * 50, i));
  }
}

TEST_F(ChannelTest, DataWithoutSpaceIsDiscarded) {
  for (size_t bytes : {size_t{1}, size_t{100}, size_t{60'000}}) {
    handler.numbers.clear();
    handler.texts.clear();
    handler.discards_next = true;
    const std::string frame = FrameBytes(Header(FrameKind::kMessage, 1), Text(bytes));
    WriteAll(peer, frame.substr(0, frame.size() / 2));
    channel.Read();
    WriteAll(peer, frame.substr(frame.size() / 2) +
                       FrameBytes(Header(FrameKind::kMessage, 2), Text(bytes, 9)));
    channel.Read();
    EXPECT_THAT(handler.numbers, ElementsAre(1, 2));
    EXPECT_EQ(handler.texts[0], std::string(bytes, '?'));
    EXPECT_EQ(handler.texts[1], Text(bytes, 9));
  }
}

TEST_F(ChannelTest, AFullSocketBufferKeepsTheOrder) {
  constexpr uint64_t kFrames = 40;
  RecordingHandler other_handler;
  Fd end(dup(peer.get()));
  Channel other(ConnectionOver(std::move(end)), 5, other_handler);
  for (uint64_t i = 0; i < kFrames; ++i) {
    Queue(FrameKind::kMessageData, i, Text(100'000 + i, i));
  }
  EXPECT_TRUE(channel.Write());
  EXPECT_FALSE(channel.Write()) << "the buffer is full";
  EXPECT_TRUE(channel.has_queued());
  for (int round = 0; round < 100'000 && other_handler.numbers.size() < kFrames; ++round) {
    other.Read();
    channel.Write();
  }
  EXPECT_FALSE(channel.has_queued());
  ASSERT_EQ(other_handler.numbers.size(), kFrames);
  for (uint64_t i = 0; i < kFrames; ++i) {
    EXPECT_EQ(other_handler.numbers[i], i);
    EXPECT_EQ(handler.written[i], i);
    EXPECT_TRUE(other_handler.texts[i] == Text(100'000 + i, i)) << i;
  }
}

TEST_F(ChannelTest, AFrameMayBeQueuedWhenOneIsWritten) {
  uint64_t next = 2;
  handler.on_written = [&] {
    if (next < 5) Queue(FrameKind::kAccept, next++, "");
  };
  Queue(FrameKind::kAccept, 1, "");
  EXPECT_TRUE(channel.Write());
  EXPECT_THAT(handler.written, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(Unread(peer.get()), static_cast<int>(4 * sizeof(FrameHeader)));
}

TEST_F(ChannelTest, CloseInsideOnFrameEndsTheReading) {
  handler.on_frame = [&] { channel.Close(); };
  WriteAll(peer, kThreeFrames);
  EXPECT_TRUE(channel.Read());
  EXPECT_THAT(handler.numbers, ElementsAre(1));
  EXPECT_EQ(channel.lost_by(), "this rank closed the connection");
  EXPECT_FALSE(channel.Read());
}

TEST_F(ChannelTest, CloseInsideSpaceForEndsTheReading) {
  handler.on_space = [&] { channel.Close(); };
  WriteAll(peer, kThreeFrames);
  EXPECT_TRUE(channel.Read());
  EXPECT_THAT(handler.numbers, IsEmpty());
  EXPECT_EQ(handler.data, "?????");
}

TEST_F(ChannelTest, CloseInsideOnWrittenDropsTheRest) {
  handler.on_written = [&] { channel.Close(); };
  for (uint64_t i = 1; i <= 3; ++i) Queue(FrameKind::kMessage, i, "text");
  channel.Write();
  EXPECT_THAT(handler.written, ElementsAre(1));
  EXPECT_FALSE(channel.has_queued());
  EXPECT_EQ(ReadAll(peer), FrameBytes(Header(FrameKind::kMessage, 1), "text"));
  Queue(FrameKind::kMessage, 4, "late");
  EXPECT_FALSE(channel.has_queued());
}

TEST_F(ChannelTest, CloseInTheMiddleOfAFrameLeavesItsMemoryAlone) {
  WriteAll(peer, FrameBytes(Header(FrameKind::kMessage, 1), Text(100)).substr(0, 100));
  channel.Read();
  channel.Close();
  const std::string before = handler.data;
  send(peer.get(), Text(64).data(), 64, MSG_NOSIGNAL);
  EXPECT_FALSE(channel.Read());
  EXPECT_EQ(handler.data, before);
}

TEST_F(ChannelTest, FramesThatArrivedBeforeTheLossAreRead) {
  WriteAll(peer, FrameBytes(Header(FrameKind::kFarewell, 1), "farewell"));
  shutdown(peer.get(), SHUT_RDWR);
  Queue(FrameKind::kMessage, 1, "to nobody");
  channel.Write();
  EXPECT_EQ(channel.lost_by(), "") << "noted by Read";
  EXPECT_TRUE(channel.Read());
  EXPECT_THAT(handler.texts, ElementsAre("farewell"));
  EXPECT_EQ(channel.lost_by(), "the connection was closed");
  EXPECT_THAT(handler.written, IsEmpty());
}

TEST_F(ChannelTest, APartOfAFrameIsNoFrame) {
  WriteAll(peer, kThreeFrames.substr(0, kThreeFrames.size() - 1));
  shutdown(peer.get(), SHUT_RDWR);
  EXPECT_TRUE(channel.Read());
  EXPECT_THAT(handler.numbers, ElementsAre(1, 2));
  EXPECT_EQ(channel.lost_by(), "the connection was closed");
}

struct Impossible {
  uint32_t kind;
  uint64_t bytes;
};
std::ostream& operator<<(std::ostream& out, const Impossible& frame) {
  return out << frame.kind << " with " << frame.bytes << " bytes";
}

constexpr uint32_t Number(FrameKind kind) { return static_cast<uint32_t>(kind); }

struct ImpossibleFrameTest : ChannelTest, testing::WithParamInterface<Impossible> {};

TEST_P(ImpossibleFrameTest, LosesTheConnectionAfterTheFramesBeforeIt) {
  FrameHeader header{.kind = static_cast<FrameKind>(GetParam().kind), .bytes = GetParam().bytes};
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  WriteAll(peer, kThreeFrames + bytes + kThreeFrames);
  EXPECT_TRUE(channel.Read());
  EXPECT_THAT(handler.numbers, ElementsAre(1, 2, 3));
  EXPECT_EQ(channel.lost_by(), kUnknown);
  EXPECT_FALSE(channel.Read());
}

INSTANTIATE_TEST_SUITE_P(
    Frames, ImpossibleFrameTest,
    testing::Values(Impossible{0, 0}, Impossible{Number(FrameKind::kFarewell) + 1, 0},
                    Impossible{UINT32_MAX, 0}, Impossible{Number(FrameKind::kData), 10},
                    Impossible{Number(FrameKind::kMessage), kMaxEagerBytes + 1},
                    Impossible{Number(FrameKind::kMessage), UINT64_MAX},
                    Impossible{Number(FrameKind::kMessageData), 0},
                    Impossible{Number(FrameKind::kMessageData), kPieceBytes + 1},
                    Impossible{Number(FrameKind::kFarewell), kMaxFarewellBytes + 1},
                    Impossible{Number(FrameKind::kOffer), 1},
                    Impossible{Number(FrameKind::kAccept), 1},
                    Impossible{Number(FrameKind::kRefuse), 1},
                    Impossible{Number(FrameKind::kCall), 1}));

TEST_F(ChannelTest, FramesOfTheLargestSizesArrive) {
  RecordingHandler other_handler;
  Fd end(dup(peer.get()));
  Channel other(ConnectionOver(std::move(end)), 5, other_handler);
  Queue(FrameKind::kMessage, 1, Text(kMaxEagerBytes));
  Queue(FrameKind::kMessageData, 2, Text(kPieceBytes));
  Queue(FrameKind::kFarewell, 3, Text(kMaxFarewellBytes));
  for (int round = 0; round < 100'000 && other_handler.numbers.size() < 3; ++round) {
    channel.Write();
    other.Read();
  }
  EXPECT_THAT(other_handler.numbers, ElementsAre(1, 2, 3));
  EXPECT_TRUE(other_handler.texts[1] == Text(kPieceBytes));
}

}  // namespace
}  // namespace rankrun::comm::stream

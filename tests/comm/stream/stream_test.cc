#include "comm/stream/stream.h"

#include <gmock/gmock.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/comm/stream/socket_pair.h"

namespace rankrun::comm::stream {
namespace {

using Progress = Stream::Progress;

constexpr size_t kStagingBytes = size_t{128} << 10;  // as in comm/stream/stream.cc

constexpr FrameHeader Numbered(uint64_t number) {
  return {.kind = FrameKind::kData, .number = number};
}

ConstBlock BlockOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
Block BlockOf(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

template <typename T>
std::byte* Bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

struct StreamTest : testing::Test {
  StreamTest() : StreamTest(SocketPair()) {}
  explicit StreamTest(SocketPair pair)
      : sender(ConnectionOver(std::move(pair.one))),
        receiver(ConnectionOver(std::move(pair.other))) {}

  // Moves a frame, and accepts its header. Returns whether it arrived.
  bool Move() {
    for (int round = 0; round < 1'000'000; ++round) {
      if (sender.sending() && sender.Send() == Progress::kClosed) return false;
      if (receiver.Receive() == Progress::kClosed) return false;
      if (receiver.header() != nullptr && !receiver.is_accepted()) {
        receiver.AcceptHeader();
        if (receiver.Receive() == Progress::kClosed) return false;
      }
      if (!sender.sending() && receiver.is_complete()) {
        receiver.FinishReceive();
        return true;
      }
    }
    return false;
  }

  // Sends values, and receives them with `values` of the same size.
  template <typename T>
  std::vector<T> Sum(const std::vector<T>& sent, std::vector<T> values, bool after_send) {
    size_t bytes = sent.size() * sizeof(T);
    Reducer reducer{.reduction = {DTypeOf<T>::kValue, ReduceOp::kSum},
                    .to = Bytes(values),
                    .with = Bytes(values),
                    .received_first = true};
    receiver.BeginReceive(
        {.peer = 0, .data = {nullptr, bytes}, .reducer = reducer, .reduces_after_send = after_send},
        0, bytes);
    sender.BeginSend(Numbered(1), {reinterpret_cast<const std::byte*>(sent.data()), bytes});
    EXPECT_TRUE(Move()) << bytes;
    return values;
  }

  // Checks a sum of `count` numbers, all of which are exact.
  template <typename T>
  void CheckSum(size_t count, bool after_send) {
    std::vector<T> sent(count);
    std::vector<T> values(count);
    std::vector<T> wanted(count);
    for (size_t i = 0; i < count; ++i) {
      sent[i] = static_cast<T>(i % 1000);
      values[i] = static_cast<T>(i % 77);
      wanted[i] = static_cast<T>(i % 1000 + i % 77);
    }
    EXPECT_TRUE(Sum(sent, values, after_send) == wanted) << count << " x " << sizeof(T) << " bytes";
  }

  Stream sender;
  Stream receiver;
};

TEST_F(StreamTest, FramesOfAllSizesArriveWhole) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{64} << 10, size_t{5} << 20}) {
    std::string sent = Text(bytes, bytes);
    std::string got(bytes + 2, '?');  // with a byte before and after
    receiver.BeginReceive({.peer = 0, .data = {BlockOf(got).data, bytes + 2}}, 1, bytes);
    sender.BeginSend(Numbered(bytes), BlockOf(std::as_const(sent)));
    ASSERT_TRUE(Move()) << bytes;
    EXPECT_EQ(receiver.header()->number, bytes);
    EXPECT_EQ(receiver.header()->bytes, bytes);
    EXPECT_TRUE(got == "?" + sent + "?") << bytes;
    EXPECT_FALSE(receiver.receiving());
  }
}

TEST_F(StreamTest, ReceivedDataIsReducedAroundTheSizeOfTheStaging) {
  constexpr size_t kStaged = kStagingBytes / sizeof(float);
  for (bool after_send : {false, true}) {
    for (size_t count : {size_t{0}, size_t{1}, kStaged - 1, kStaged, kStaged + 1, 2 * kStaged - 1,
                         2 * kStaged, 2 * kStaged + 1, 10 * kStaged}) {
      CheckSum<float>(count, after_send);
    }
  }
}

// A smaller or larger staging of an earlier frame is used again.
TEST_F(StreamTest, NoStagingSplitsAnElementOfALaterType) {
  CheckSum<float>(3, false);
  CheckSum<double>(100, false);
  CheckSum<float>(kStagingBytes / sizeof(float) + 1, true);
  CheckSum<double>(3 * kStagingBytes / sizeof(double), false);
  CheckSum<int8_t>(0, false);
  CheckSum<double>(3 * kStagingBytes / sizeof(double), true);
}

TEST_F(StreamTest, APartIsReducedAtItsPlaceInTheBlock) {
  std::vector<int> sent(100'000, 5);
  std::vector<int> values(200'000);
  std::iota(values.begin(), values.end(), 0);
  auto wanted = values;
  for (size_t i = 50'000; i < 150'000; ++i) wanted[i] += 5;
  receiver.BeginReceive({.peer = 0,
                         .data = {Bytes(values), 800'000},
                         .reducer = Reducer{.reduction = {DType::kInt32, ReduceOp::kSum},
                                            .to = Bytes(values),
                                            .with = Bytes(values),
                                            .received_first = false}},
                        200'000, 400'000);
  sender.BeginSend(Numbered(1), {Bytes(sent), 400'000});
  ASSERT_TRUE(Move());
  EXPECT_TRUE(values == wanted);
}

TEST_F(StreamTest, DataThatIsStillSentIsNotReducedYet) {
  std::vector<int> sent(100, 5);
  std::vector<int> values(100, 1);
  receiver.BeginReceive({.peer = 0,
                         .data = {Bytes(values), 400},
                         .reducer = Reducer{.reduction = {DType::kInt32, ReduceOp::kSum},
                                            .to = Bytes(values),
                                            .with = Bytes(values),
                                            .received_first = false},
                         .reduces_after_send = true},
                        0, 400);
  sender.BeginSend(Numbered(1), {Bytes(sent), 400});
  EXPECT_EQ(sender.Send(), Progress::kDone);
  EXPECT_EQ(receiver.Receive(), Progress::kSome);
  receiver.AcceptHeader();
  EXPECT_EQ(receiver.Receive(), Progress::kDone);
  EXPECT_TRUE(receiver.is_complete());
  EXPECT_THAT(values, testing::Each(1));
  receiver.FinishReceive();
  EXPECT_THAT(values, testing::Each(6));
}

TEST_F(StreamTest, AWrongHeaderStopsBeforeDataCounts) {
  std::vector<int> sent(100, 5);
  std::vector<int> values(100, 1);
  receiver.BeginReceive({.peer = 0,
                         .data = {Bytes(values), 400},
                         .reducer = Reducer{.reduction = {DType::kInt32, ReduceOp::kSum},
                                            .to = Bytes(values),
                                            .with = Bytes(values),
                                            .received_first = false}},
                        0, 400);
  sender.BeginSend(Numbered(17), {Bytes(sent), 400});
  EXPECT_EQ(sender.Send(), Progress::kDone);
  for (int i = 0; i < 3; ++i) {
    receiver.Receive();
    ASSERT_NE(receiver.header(), nullptr);
    EXPECT_EQ(receiver.header()->number, 17U);
    EXPECT_FALSE(receiver.is_complete());
    EXPECT_TRUE(receiver.receiving());
  }
  EXPECT_THAT(values, testing::Each(1));
}

TEST_F(StreamTest, TheNextFrameStaysInTheKernel) {
  for (size_t bytes : {0U, 1U, 1000U}) {
    std::string first = Text(bytes, 1);
    std::string second = Text(50, 2);
    std::string got(bytes, '?');
    for (const std::string* sent : {&first, &second}) {
      sender.BeginSend(Numbered(1), BlockOf(*sent));
      ASSERT_EQ(sender.Send(), Progress::kDone);
    }
    receiver.BeginReceive({.peer = 0, .data = BlockOf(got)}, 0, bytes);
    ASSERT_TRUE(Move());
    EXPECT_EQ(got, first);
    EXPECT_EQ(Unread(receiver.fd()), static_cast<int>(sizeof(FrameHeader) + 50));
    got = std::string(50, '?');
    receiver.BeginReceive({.peer = 0, .data = BlockOf(got)}, 0, 50);
    ASSERT_TRUE(Move());
    EXPECT_EQ(got, second);
  }
}

TEST(StreamLossTest, AFrameThatBreaksOffIsALoss) {
  const std::string frame = FrameBytes(Numbered(1), Text(100));
  for (size_t arrived : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{163}}) {
    SocketPair pair;
    Stream receiver(ConnectionOver(std::move(pair.other)));
    std::string got(100, '?');
    receiver.BeginReceive({.peer = 0, .data = BlockOf(got)}, 0, 100);
    WriteAll(pair.one, frame.substr(0, arrived));
    pair.one.Reset();
    Progress progress = receiver.Receive();
    EXPECT_EQ(receiver.header() != nullptr, arrived >= sizeof(FrameHeader));
    if (receiver.header() != nullptr) {
      receiver.AcceptHeader();
      progress = receiver.Receive();
    }
    EXPECT_EQ(progress, Progress::kClosed) << arrived;
    EXPECT_EQ(receiver.closed_by(), "the connection was closed");
    EXPECT_FALSE(receiver.is_complete());
  }
}

TEST(StreamLossTest, AFrameThatHasArrivedSurvivesTheLoss) {
  SocketPair pair;
  Stream receiver(ConnectionOver(std::move(pair.other)));
  std::string got(100, '?');
  receiver.BeginReceive({.peer = 0, .data = BlockOf(got)}, 0, 100);
  WriteAll(pair.one, FrameBytes(Numbered(1), Text(100)));
  pair.one.Reset();
  EXPECT_EQ(receiver.Receive(), Progress::kSome);
  receiver.AcceptHeader();
  EXPECT_EQ(receiver.Receive(), Progress::kDone);
  EXPECT_EQ(got, Text(100));
}

TEST(StreamLossTest, ASendToAClosedConnectionIsALoss) {
  SocketPair pair;
  Stream sender(ConnectionOver(std::move(pair.one)));
  pair.other.Reset();
  std::string sent = Text(100);
  sender.BeginSend(Numbered(1), BlockOf(std::as_const(sent)));
  EXPECT_EQ(sender.Send(), Progress::kClosed);
  EXPECT_EQ(sender.closed_by(), "Broken pipe");
}

TEST_F(StreamTest, CloseEndsSendAndReceiveOnBothSides) {
  std::string sent = Text(5 << 20);
  std::string got(100, '?');
  sender.BeginSend(Numbered(1), BlockOf(std::as_const(sent)));
  sender.BeginReceive({.peer = 0, .data = BlockOf(got)}, 0, 100);
  EXPECT_EQ(sender.Send(), Progress::kSome);
  sender.Close();
  EXPECT_FALSE(sender.sending());
  EXPECT_FALSE(sender.receiving());
  std::string all(5 << 20, '?');
  receiver.BeginReceive({.peer = 0, .data = BlockOf(all)}, 0, all.size());
  EXPECT_FALSE(Move());
  EXPECT_NE(receiver.closed_by(), "");
}

}  // namespace
}  // namespace rankrun::comm::stream

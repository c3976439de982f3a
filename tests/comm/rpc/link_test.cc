#include "comm/rpc/link.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <random>
#include <thread>

#include "base/clock.h"

namespace rankrun::comm::rpc {
namespace {

using testing::ElementsAre;

struct Received {
  uint64_t id;
  FrameKind kind;
  std::string head;
  std::vector<std::string> blobs;
  bool is_aligned = true;

  bool operator==(const Received&) const = default;
};

struct RecordingSink final : FrameSink {
  void OnFrame(const FrameHeader& header, std::string_view head, std::vector<Blob> blobs) override {
    Received& one = received.emplace_back(
        Received{.id = header.id, .kind = header.kind, .head = std::string(head), .blobs = {}});
    for (const Blob& blob : blobs) {
      one.blobs.emplace_back(reinterpret_cast<const char*>(blob.bytes.data()), blob.bytes.size());
      one.is_aligned &= reinterpret_cast<uintptr_t>(blob.bytes.data()) % kBlobAlignment == 0;
    }
  }
  std::vector<Received> received;
};

Blob BlobOf(const std::string& text) {
  auto owner = std::make_shared<std::string>(text);
  return {owner, {reinterpret_cast<const std::byte*>(owner->data()), owner->size()}};
}

struct LinkTest : testing::Test {
  LinkTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    one = std::make_unique<Link>(stream::ConnectionOver(Fd(ends[0])));
    raw = dup(ends[1]);
    other = std::make_unique<Link>(stream::ConnectionOver(Fd(ends[1])));
  }
  ~LinkTest() override { close(raw); }

  // Moves until `count` frames have arrived, or the link is lost.
  void Pump(size_t count) {
    auto deadline = MonotonicClock().Now() + std::chrono::seconds(60);
    while (sink.received.size() < count && other->lost_by().empty()) {
      if (one->has_queued()) one->Write();
      other->Read(sink);
      ASSERT_LT(MonotonicClock().Now(), deadline);
    }
  }

  std::unique_ptr<Link> one, other;
  int raw;  // the end of `other`
  RecordingSink sink;
};

TEST_F(LinkTest, MessagesArriveWhole) {
  EXPECT_TRUE(one->Send(FrameKind::kRequest, 1, {.head = "add", .blobs = {}}));
  EXPECT_TRUE(one->Send(FrameKind::kReply, 2, {.head = "", .blobs = {BlobOf("one"), BlobOf("")}}));
  EXPECT_TRUE(one->Send(FrameKind::kGoodbye, 0, {}));
  Pump(3);
  EXPECT_THAT(sink.received, ElementsAre(Received{1, FrameKind::kRequest, "add", {}},
                                         Received{2, FrameKind::kReply, "", {"one", ""}},
                                         Received{0, FrameKind::kGoodbye, "", {}}));
}

// Sizes around those of the buffers, in random order, faster than they are read.
TEST_F(LinkTest, AllSizesArriveInOrder) {
  std::mt19937 random(7);
  std::vector<Received> sent;
  for (uint64_t id = 0; id < 300; ++id) {
    Received each{id, FrameKind::kRequest, std::string(random() % 100, 'h'), {}};
    for (size_t i = random() % 4; i > 0; --i) {
      size_t size = random() % 3 == 0 ? random() % 300'000 : random() % 100;
      each.blobs.emplace_back(size, static_cast<char>('a' + random() % 26));
    }
    if (random() % 10 == 0) each.head.resize(random() % 200'000, 'l');
    sent.push_back(each);
    Message message{.head = each.head, .blobs = {}};
    for (const std::string& blob : each.blobs) message.blobs.push_back(BlobOf(blob));
    one->Send(each.kind, id, std::move(message));
  }
  Pump(sent.size());
  EXPECT_EQ(sink.received, sent);
}

TEST_F(LinkTest, AFrameInPiecesIsOne) {
  Message message{.head = "head", .blobs = {BlobOf("blob")}};
  FrameHeader header = HeaderOf(FrameKind::kReply, 9, message);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  uint64_t size = 4;
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += "head";
  bytes.resize(sizeof header + kBlobAlignment);
  bytes += "blob";
  int end = dup(one->fd());
  for (char c : bytes) {
    ASSERT_EQ(send(end, &c, 1, 0), 1);
    other->Read(sink);
  }
  close(end);
  EXPECT_THAT(sink.received, ElementsAre(Received{9, FrameKind::kReply, "head", {"blob"}}));
}

TEST_F(LinkTest, DamagedFramesCloseTheLink) {
  FrameHeader header{.id = 1, .bytes = 4, .head_bytes = 4, .blobs = 0, .kind = FrameKind{77}};
  ASSERT_EQ(send(one->fd(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  EXPECT_TRUE(other->Read(sink));
  EXPECT_EQ(other->lost_by(), "the peer sends what is no message");
  EXPECT_FALSE(other->Send(FrameKind::kRequest, 1, {}));
  EXPECT_THAT(sink.received, testing::IsEmpty());
}

TEST_F(LinkTest, SizesThatDoNotAddUpCloseTheLink) {
  FrameHeader header{.id = 1, .bytes = 100, .head_bytes = 0, .blobs = 1, .kind = FrameKind::kReply};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.resize(sizeof header + 100, '\x7f');
  ASSERT_EQ(send(one->fd(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  other->Read(sink);
  EXPECT_EQ(other->lost_by(), "the peer sends what is no message");
}

TEST_F(LinkTest, AClosedPeerIsALoss) {
  one->Send(FrameKind::kRequest, 1, {.head = "last", .blobs = {}});
  one->Close("done");
  EXPECT_EQ(one->lost_by(), "done");
  Pump(1);
  other->Read(sink);
  EXPECT_EQ(sink.received.size(), 1U);
  EXPECT_EQ(other->lost_by(), "the peer has closed the connection");
}

TEST(MessageTest, ImplausibleHeadersAreRefused) {
  const FrameHeader good{
      .id = 1, .bytes = 30, .head_bytes = 10, .blobs = 1, .kind = FrameKind::kReply};
  EXPECT_TRUE(IsPlausible(good));
  FrameHeader bad = good;
  bad.bytes = 17;
  EXPECT_FALSE(IsPlausible(bad));
  bad = good;
  bad.blobs = 0;
  EXPECT_FALSE(IsPlausible(bad));
  bad = good;
  bad.bytes = kMaxBodyBytes + 1;
  EXPECT_FALSE(IsPlausible(bad));
  bad = good;
  bad.head_bytes = kMaxHeadBytes + 1;
  EXPECT_FALSE(IsPlausible(bad));
  bad = good;
  bad.kind = FrameKind{0};
  EXPECT_FALSE(IsPlausible(bad));
}

}  // namespace
}  // namespace rankrun::comm::rpc

// Programs that connect to the port of a rank and are no rank of its group.

#include <gmock/gmock.h>

#include "comm/tcp/acceptor.h"
#include "comm/tcp/dialer.h"
#include "comm/tcp/handshake.h"
#include "tests/comm/tcp/group.h"

namespace rankrun::comm::tcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// Two ranks, of which rank 1 connects when the strangers have been served.
class TcpStrangersTest : public testing::Test {
 protected:
  TcpStrangersTest() {
    threads_.emplace_back([this] { results_[0] = group_.Connect(0); });
    threads_.emplace_back([this] {
      LateStore store(group_.keys, strangers_are_served_);
      results_[1] = ConnectAll(group_.Config(store, 1));
    });
  }
  ~TcpStrangersTest() override { strangers_are_served_.Pass(); }

  Fd Connect() const { return ConnectTo(group_.AddressOf(0).listeners[0]); }

  // Returns the keys of the group, which no stranger has.
  KeyRing Keys() const {
    return KeyRing("tcp", {group_.AddressOf(0).key, group_.AddressOf(1).key}, 2);
  }

  // Expects that the two ranks are connected to each other.
  void ExpectConnected() {
    strangers_are_served_.Pass();
    threads_.clear();
    for (const auto& result : results_) {
      ASSERT_TRUE(result.has_value() && *result) << result->error().message;
    }
    const PeerSockets& zero = (**results_[0])[1];
    const PeerSockets& one = (**results_[1])[0];
    SendTo(one.control, "control");
    SendTo(one.data[0], "data");
    EXPECT_EQ(ReadFrom(zero.control, 7), "control");
    EXPECT_EQ(ReadFrom(zero.data[0], 4), "data");
  }

 private:
  TcpGroup group_{2};
  Turn strangers_are_served_;
  std::array<std::optional<ConnectResult>, 2> results_;
  std::vector<std::jthread> threads_;
};

const StreamId kDataOfRankOne{.dialer = 1, .listener = 0, .stream = 1};

TEST_F(TcpStrangersTest, ASilentOneDelaysNobody) {
  Fd silent = Connect();
  ExpectConnected();
  EXPECT_EQ(ReadFrom(silent, 1), "") << "closed when the group is connected";
}

TEST_F(TcpStrangersTest, GarbageIsClosedAtTheFirstWrongByte) {
  for (std::string garbage : {"?", "rankrun\x02", "GET / HTTP/1.1\r\n\r\n"}) {
    Fd stranger = Connect();
    SendTo(stranger, garbage);
    EXPECT_EQ(ReadFrom(stranger, 1), "") << garbage;
  }
  ExpectConnected();
}

TEST_F(TcpStrangersTest, AWrongProofIsClosed) {
  KeyRing other_keys("tcp", std::vector<RankKey>(2), 2);
  DialerHandshake dialer(other_keys, kDataOfRankOne);
  Fd stranger = Connect();
  SendTo(stranger, dialer.first());
  std::string challenge = ReadFrom(stranger, dialer.wants());
  ASSERT_EQ(challenge.size(), dialer.wants());
  EXPECT_EQ(dialer.Take(challenge).state, HandshakeStep::State::kFailed);
  SendTo(stranger, std::string(kProofBytes, 'x'));
  EXPECT_EQ(ReadFrom(stranger, 1), "");
  ExpectConnected();
}

// The proof is fresh, and answers another nonce.
TEST_F(TcpStrangersTest, ARecordedProofIsClosed) {
  KeyRing keys = Keys();
  DialerHandshake dialer(keys, kDataOfRankOne);
  Fd recorded = Connect();
  SendTo(recorded, dialer.first());
  std::string proof = dialer.Take(ReadFrom(recorded, dialer.wants())).reply;
  ASSERT_EQ(proof.size(), kProofBytes);

  Fd replay = Connect();
  SendTo(replay, dialer.first());
  EXPECT_EQ(ReadFrom(replay, kNonceBytes + kProofBytes).size(), kNonceBytes + kProofBytes);
  SendTo(replay, proof);
  EXPECT_EQ(ReadFrom(replay, 1), "");
  ExpectConnected();
}

TEST_F(TcpStrangersTest, AHalfHelloDelaysNobody) {
  KeyRing keys = Keys();
  Fd stranger = Connect();
  SendTo(stranger, DialerHandshake(keys, kDataOfRankOne).first().substr(0, kHelloBytes - 1));
  ExpectConnected();
}

TEST_F(TcpStrangersTest, OfTooManyTheOldestIsClosed) {
  std::vector<Fd> strangers;
  for (size_t i = 0; i < kMaxUnidentified + 8; ++i) strangers.push_back(Connect());
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(ReadFrom(strangers[i], 1), "");
  ExpectConnected();
}

// A rank that accepts; its peer and strangers are sockets of the test.
class TcpAcceptorTest : public testing::Test {
 protected:
  TcpAcceptorTest() {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    SocketAddress any = *SocketAddress::FromNumeric("127.0.0.1", 0);
    EXPECT_EQ(bind(fd.get(), any.raw(), any.raw_size()), 0);
    EXPECT_EQ(listen(fd.get(), 16), 0);
    listeners.addresses.push_back(*SocketAddress::LocalOf(fd.get()));
    listeners.sockets.push_back(std::move(fd));
  }

  // Waits for an event and handles it. Returns whether there was one.
  bool Step(TimePoint now, milliseconds timeout = seconds(60)) {
    std::vector<pollfd> entries;
    acceptor.AddPollEntries(entries, now);
    bool has_event = poll(entries.data(), entries.size(), static_cast<int>(timeout.count())) > 0;
    EXPECT_TRUE(acceptor.Advance(entries, now));
    return has_event;
  }

  Listeners listeners;
  const KeyRing keys{"tcp", std::vector<RankKey>(2), 2};
  SocketTable table{2, 0, 1};
  Acceptor acceptor{{.listeners = listeners, .keys = keys, .need = NeedOf(2, 1), .own_rank = 0},
                    table};
  const TimePoint start = std::chrono::steady_clock::now();
};

TEST_F(TcpAcceptorTest, APeerHasFiveSecondsToProveThatItIsARank) {
  Fd silent = ConnectTo(listeners.addresses[0]);
  EXPECT_EQ(acceptor.NextDeadline(start), TimePoint::max());
  EXPECT_TRUE(Step(start));
  EXPECT_EQ(acceptor.NextDeadline(start), start + seconds(5));
  Step(start + milliseconds(4999), milliseconds(0));
  EXPECT_NE(acceptor.NextDeadline(start), TimePoint::max()) << "still there";
  Step(start + seconds(5), milliseconds(0));
  EXPECT_EQ(acceptor.NextDeadline(start), TimePoint::max());
  EXPECT_EQ(ReadFrom(silent, 1), "");
}

TEST_F(TcpAcceptorTest, AFullHouseIsClosedToNewcomersForAMoment) {
  std::vector<Fd> strangers;
  for (size_t i = 0; i < kMaxUnidentified; ++i) {
    strangers.push_back(ConnectTo(listeners.addresses[0]));
    EXPECT_TRUE(Step(start));
  }
  Fd late = ConnectTo(listeners.addresses[0]);
  EXPECT_FALSE(Step(start + milliseconds(99), milliseconds(0)));
  EXPECT_EQ(acceptor.NextDeadline(start + milliseconds(99)), start + milliseconds(100));
  EXPECT_TRUE(Step(start + milliseconds(100)));
  EXPECT_EQ(ReadFrom(strangers[0], 1), "");
  EXPECT_FALSE(Step(start + milliseconds(101), milliseconds(0))) << "the others stay";
}

// A rank that connects to a port where no rank listens.
class TcpDialerTest : public testing::Test {
 protected:
  TcpDialerTest() {
    EXPECT_EQ(bind(port.get(), any.raw(), any.raw_size()), 0);
    dialer.Add({.id = kDataOfRankOne,
                .address = *SocketAddress::LocalOf(port.get()),
                .peer_name = "rank 0"});
  }

  Result<void> Step(TimePoint now) {
    if (auto ok = dialer.Start(now); !ok) return ok;
    std::vector<pollfd> entries;
    dialer.AddPollEntries(entries);
    if (!entries.empty()) poll(entries.data(), entries.size(), 60'000);
    return dialer.Advance(entries, now);
  }

  const SocketAddress any = *SocketAddress::FromNumeric("127.0.0.1", 0);
  Fd port{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};  // bound
  const KeyRing keys{"tcp", std::vector<RankKey>(2), 2};
  SocketTable table{2, 1, 1};
  Dialer dialer{keys, NeedOf(2, 1), table};
  const TimePoint start = std::chrono::steady_clock::now();
};

TEST_F(TcpDialerTest, ARefusedConnectionIsTriedAgain) {
  ASSERT_TRUE(Step(start));
  EXPECT_THAT(dialer.last_failure(), HasSubstr("connect to rank 0 at 127.0.0.1:"));
  EXPECT_THAT(dialer.last_failure(), HasSubstr(": Connection refused"));
  EXPECT_EQ(dialer.NextDeadline(), start + milliseconds(20));

  ASSERT_EQ(listen(port.get(), 1), 0);
  ASSERT_TRUE(Step(start + milliseconds(20)));
  Fd accepted(accept4(port.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(ReadFrom(accepted, kHelloBytes).size(), kHelloBytes);
}

TEST_F(TcpDialerTest, AnotherProgramIsNoPeer) {
  ASSERT_EQ(listen(port.get(), 1), 0);
  ASSERT_TRUE(Step(start));
  Fd accepted(accept4(port.get(), nullptr, nullptr, SOCK_CLOEXEC));
  SendTo(accepted, std::string(kNonceBytes + kProofBytes, '?'));
  ASSERT_TRUE(Step(start));
  EXPECT_THAT(dialer.last_failure(), HasSubstr(": the program there is no rank of this group"));
  EXPECT_FALSE(table.is_complete());
  EXPECT_EQ(dialer.NextDeadline(), start + milliseconds(20));
}

TEST_F(TcpDialerTest, AnErrorThatStaysIsReportedAtOnce) {
  Dialer hopeless(keys, NeedOf(2, 1), table);
  hopeless.Add({.id = kDataOfRankOne,
                .address = *SocketAddress::FromNumeric("255.255.255.255", 9),
                .peer_name = "rank 0"});
  auto ok = hopeless.Start(start);
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().code, ErrorCode::kSystem);
  EXPECT_THAT(ok.error().message, HasSubstr("connect to rank 0 at 255.255.255.255:9: "));
}

}  // namespace
}  // namespace rankrun::comm::tcp

#include <gmock/gmock.h>
#include <netinet/in.h>

#include "base/write_all.h"
#include "tests/agent/control/control_fixture.h"
#include "tests/base/net/peer_user_probe.h"
#include "tests/base/uv/ready.h"

// Peers that are not rankruns of this job, on either side.

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

struct ControlStrangersTest : ControlTest {
  // Returns all bytes that `client` gets until the server closes it.
  std::string ReadToEnd(const Fd& client) {
    std::string text;
    EXPECT_TRUE(Eventually([&] {
      char bytes[4096];
      ssize_t count = recv(client.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (count > 0) text.append(bytes, static_cast<size_t>(count));
      return count == 0 || (count < 0 && errno == ECONNRESET);
    }));
    return text;
  }
  // Sends byte by byte, with an iteration of the loop for each.
  void SendSlowly(const Fd& client, std::string_view bytes) {
    for (char byte : bytes) {
      WriteAll(client.get(), {&byte, 1});
      bool turned = false;
      loop.Post([&] { turned = true; });
      Eventually([&] { return turned; });
    }
  }
  // Returns the failure of a link to a server that calls `greet` for each
  // connection.
  DialFailure FailureOf(const std::function<void(Stream&)>& greet, bool keep = true) {
    std::vector<std::unique_ptr<Stream>> streams;
    auto listener = test::Listen(loop, test::Loopback(), [&](std::unique_ptr<Stream> stream) {
      greet(*stream);
      if (keep) streams.push_back(std::move(stream));
    });
    NotingLink link(loop, LinkOptions{.endpoints = {{"127.0.0.1", listener->address().port()}},
                                      .job_id = "job",
                                      .secret = "",
                                      .make_hello = {},
                                      .handshake_timeout = milliseconds(50)});
    EXPECT_TRUE(Eventually([&] { return !link.failures.empty(); }));
    EXPECT_EQ(link.ups, 0);
    return link.failures.front();
  }

  JobSecret secret{"open sesame"};
};

TEST_F(ControlStrangersTest, AHandshakeMayArriveByteByByte) {
  NotingServer server(loop, {.job_id = "job", .secret = "open sesame"});
  ASSERT_TRUE(server.Listen());
  Fd client = test::ConnectTo(server.address());
  ClientHandshake handshake(secret, "job");
  FrameReader reader;
  SendSlowly(client, ClientHandshake::FirstBytes());
  ASSERT_FALSE(handshake.TakeChallenge(ReadFrame(client, reader)));
  SendSlowly(client, EncodeFrame(handshake.Hello("hi")));
  ASSERT_FALSE(handshake.TakeAnswer(ReadFrame(client, reader)));
  auto cipher = handshake.TakeCipher();
  for (const char* message : {"one", "two"}) SendSlowly(client, *cipher->Seal(message));
  ASSERT_TRUE(Eventually([&] { return server.messages.size() == 2; }));
  EXPECT_EQ(server.hellos.front().second, "hi");
  client.Reset();
  ASSERT_TRUE(Eventually([&] { return server.lost.size() == 1; }));
  EXPECT_THAT(server.lost.front().second, HasSubstr("closed the connection"));
}

TEST_F(ControlStrangersTest, GarbageIsClosedAndOthersAreServed) {
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, {server.endpoint()});
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  std::string first = ClientHandshake::FirstBytes();
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("RKRM"), first + "\xFF\xFF\xFF\xFF",
        first + std::string(5, '\0'), first + EncodeFrame("no CBOR"),
        first + EncodeFrame(std::string(100'000, '\x81'))}) {
    Fd client = test::ConnectTo(server.address());
    WriteAll(client.get(), bytes);
    ReadToEnd(client);
  }
  EXPECT_EQ(server.hellos.size(), 1u);
  EXPECT_TRUE(server.lost.empty());
  EXPECT_TRUE(link.downs.empty());
  EXPECT_TRUE(HasLogged("control: closed the connection from 127.0.0.1:"));
}

TEST_F(ControlStrangersTest, AnotherVersionGetsOursAndIsClosed) {
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  Fd client = test::ConnectTo(server.address());
  WriteAll(client.get(), std::string(kControlPreamble) + '\7');
  std::string answer = ReadToEnd(client);
  EXPECT_THAT(answer, HasSubstr("version\3"));
  EXPECT_TRUE(HasLogged("it speaks version 7 of the control protocol, this one version 3"));
}

TEST_F(ControlStrangersTest, ATooLargeFrameEndsAnOpenConnection) {
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  Fd client = test::ConnectTo(server.address());
  Greet(client, JobSecret(""));
  WriteAll(client.get(), "\x7F\xFF\xFF\xFF");
  ASSERT_TRUE(Eventually([&] { return server.lost.size() == 1; }));
  EXPECT_THAT(server.lost.front().second, HasSubstr("over the limit of 1048576"));
}

// A program on the path between a node and its coordinator sees all frames, and
// may send its own.
TEST_F(ControlStrangersTest, FramesOfAnotherSenderEndTheConnection) {
  NotingServer server(loop, {.job_id = "job", .secret = "open sesame"});
  ASSERT_TRUE(server.Listen());
  auto forge = [&](const std::function<std::string(SessionCipher&)>& make_frames) {
    server.lost.clear();
    server.messages.clear();
    Fd client = test::ConnectTo(server.address());
    auto cipher = Greet(client, secret);
    WriteAll(client.get(), make_frames(*cipher));
    EXPECT_TRUE(Eventually([&] { return server.lost.size() == 1; }));
    return server.lost.empty() ? "" : server.lost.front().second;
  };
  EXPECT_EQ(forge([](SessionCipher&) { return EncodeFrame("close the job"); }), kForgedMessage);
  EXPECT_EQ(forge([](SessionCipher&) { return EncodeFrame(std::string(100, 'x')); }),
            kForgedMessage);
  EXPECT_EQ(forge([](SessionCipher& cipher) {
              std::string frame = *cipher.Seal("one");
              frame.back() ^= 1;
              return frame;
            }),
            kForgedMessage);
  EXPECT_TRUE(server.messages.empty());
  EXPECT_EQ(forge([](SessionCipher& cipher) {
              std::string frame = *cipher.Seal("one");
              return frame + frame;
            }),
            kForgedMessage);
  EXPECT_EQ(server.messages, std::vector<std::string>{"one"});
  EXPECT_EQ(forge([](SessionCipher& cipher) {
              cipher.Seal("removed");
              return *cipher.Seal("two");
            }),
            kForgedMessage);
  EXPECT_TRUE(server.messages.empty());
}

TEST_F(ControlStrangersTest, UnfinishedHandshakesEndAtTheirDeadline) {
  NotingServer server(
      loop, {.job_id = "job", .secret = "", .handshake_timeout = std::chrono::milliseconds(30)});
  ASSERT_TRUE(server.Listen());
  Fd silent = test::ConnectTo(server.address());
  Fd half = test::ConnectTo(server.address());
  WriteAll(half.get(), std::string_view(kControlPreamble).substr(0, 3));
  Fd greeted = test::ConnectTo(server.address());
  WriteAll(greeted.get(), ClientHandshake::FirstBytes() + std::string(2, '\0'));
  for (const Fd* client : {&silent, &half, &greeted}) ReadToEnd(*client);
  EXPECT_EQ(server->connection_count(), 0u);
  EXPECT_TRUE(HasLogged("no hello within 0.030 s"));
}

// The handshake of a node takes less than the chance of a stranger.
TEST_F(ControlStrangersTest, SilentStrangersDoNotLockNodesOut) {
  NotingServer server(
      loop, {.job_id = "job", .secret = "", .handshakes = {.in_all = 8, .per_network = 4}});
  ASSERT_TRUE(server.Listen());
  std::vector<Fd> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(test::ConnectTo(server.address()));
  std::vector<std::unique_ptr<NotingLink>> links;
  for (int i = 0; i < 20; ++i) {  // refused links dial again
    links.push_back(std::make_unique<NotingLink>(loop, std::vector{server.endpoint()}));
  }
  EXPECT_TRUE(Eventually([&] { return server.hellos.size() == 20; }));
  EXPECT_TRUE(HasLogged("too many connections are in the handshake"));
  EXPECT_LE(server->connection_count(), 20u + 4u);
  EXPECT_TRUE(server.lost.empty());
}

TEST_F(ControlStrangersTest, APeerThatDoesNotReadIsLost) {
  NotingServer server(loop, {.job_id = "job", .secret = "", .unsent_bytes = size_t{2} << 20});
  ASSERT_TRUE(server.Listen());
  Fd client = test::ConnectTo(server.address());
  Greet(client, JobSecret(""));
  PeerId id = server.hellos.front().first;
  std::string large(kMaxMessageBytes, 'x');
  for (int i = 0; i < 64 && server->connection_count() == 1; ++i) {
    server->Send(id, large);
    EXPECT_TRUE(server.lost.empty()) << "a callback inside Send";
    if (i % 8 == 7) test::RunReadyCallbacks(loop);
  }
  ASSERT_TRUE(Eventually([&] { return server.lost.size() == 1; }));
  EXPECT_THAT(server.lost.front().second, HasSubstr("does not read: "));
}

TEST_F(ControlStrangersTest, ACoordinatorThatDoesNotReadIsGivenUp) {
  JobSecret none("");
  ServerHandshake handshake(none, "job");
  std::unique_ptr<Stream> server;
  FrameReader reader;
  auto listener = test::Listen(loop, test::Loopback(), [&](std::unique_ptr<Stream> stream) {
    if (server) return;
    server = std::move(stream);
    server->Write(EncodeFrame(handshake.Challenge()));
    auto on_data = [&](std::span<const char> data) {
      std::string_view bytes(data.data(), data.size());
      if (bytes.starts_with(kControlPreamble)) bytes.remove_prefix(kFirstBytes);
      auto hello = reader.Next(bytes);
      if (!hello || !*hello) return;
      server->Write(EncodeFrame(handshake.Judge(**hello)->answer));
      server->PauseReading();
    };
    server->Start({.on_data = on_data, .on_end = {}, .on_drained = {}});
  });
  NotingLink link(loop, LinkOptions{.endpoints = {{"127.0.0.1", listener->address().port()}},
                                    .job_id = "job",
                                    .secret = "",
                                    .make_hello = {},
                                    .unsent_bytes = size_t{2} << 20});
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  std::string large(kMaxMessageBytes, 'x');
  for (int i = 0; i < 64; ++i) link->Send(large);
  EXPECT_TRUE(link.downs.empty()) << "a callback inside Send";
  ASSERT_TRUE(Eventually([&] { return link.downs.size() == 1; }));
  EXPECT_THAT(link.downs.front(), HasSubstr("does not read: "));
}

TEST_F(ControlStrangersTest, OtherProgramsThatAnswerAreReported) {
  DialFailure failure = FailureOf([](Stream& stream) { stream.Write("HTTP/1.1 400 Bad\r\n\r\n"); });
  EXPECT_EQ(failure.kind, DialFailureKind::kNotRankrun);
  EXPECT_EQ(failure.why, "the program that answers there is not rankrun");

  failure = FailureOf([](Stream&) {}, /*keep=*/false);
  EXPECT_TRUE(failure.kind == DialFailureKind::kNotRankrun ||
              failure.kind == DialFailureKind::kReset)
      << failure.why;

  failure = FailureOf([](Stream&) {});
  EXPECT_EQ(failure.kind, DialFailureKind::kNotRankrun);
  EXPECT_THAT(failure.why, HasSubstr("sends nothing within 0.050 s"));

  JobSecret none("");
  ServerHandshake handshake(none, "job");
  failure = FailureOf([&](Stream& stream) {
    stream.Write(EncodeFrame(handshake.Challenge()) + EncodeFrame("no answer"));
  });
  EXPECT_EQ(failure.kind, DialFailureKind::kNotRankrun);

  failure = FailureOf([&](Stream& stream) {
    std::string challenge = handshake.Challenge();
    challenge.back() = '\7';  // the version
    stream.Write(EncodeFrame(challenge));
  });
  EXPECT_EQ(failure.kind, DialFailureKind::kOtherVersion);
  EXPECT_THAT(failure.why, HasSubstr("speaks version 7 of the control protocol"));
}

// Without a job secret, only the user tells a member from another program of the
// host. `PeerUserTest` finds out other users.
TEST_F(ControlStrangersTest, AnotherUserOfTheHostIsNotServed) {
  if (!test::KernelTellsUsers()) GTEST_SKIP() << "the kernel does not tell";
  uid_t asked = 0;
  NotingServer server(loop, {.job_id = "job", .secret = "", .admits_user = [&](uid_t user) {
                               asked = user;
                               return false;
                             }});
  ASSERT_TRUE(server.Listen());
  Fd client = test::ConnectTo(server.address());
  WriteAll(client.get(), ClientHandshake::FirstBytes());
  EXPECT_EQ(ReadToEnd(client), "");
  EXPECT_EQ(asked, geteuid());
  EXPECT_TRUE(HasLogged("it belongs to user " + std::to_string(geteuid()) + " of this host"));
}

TEST_F(ControlStrangersTest, ACoordinatorOfAnotherUserOfTheHostIsRefused) {
  if (!test::KernelTellsUsers()) GTEST_SKIP() << "the kernel does not tell";
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, LinkOptions{.endpoints = {server.endpoint()},
                                    .job_id = "job",
                                    .secret = "",
                                    .make_hello = {},
                                    .admits_user = [](uid_t) { return false; }});
  ASSERT_TRUE(Eventually([&] { return !link.failures.empty(); }));
  EXPECT_EQ(link.failures.front().kind, DialFailureKind::kWrongSecret);
  EXPECT_THAT(link.failures.front().ToString(),
              HasSubstr(" of this host, which a job without a secret does not trust"));
  EXPECT_EQ(link.ups, 0);
  EXPECT_TRUE(server.hellos.empty());
}

// A reset removes the socket that would tell the user.
TEST_F(ControlStrangersTest, AConnectionThatWasResetBeforeItIsAdoptedIsNotServed) {
  if (!test::KernelTellsUsers()) GTEST_SKIP() << "the kernel does not tell";
  NotingServer server(loop, {.job_id = "job", .secret = "", .admits_user = [](uid_t) {
                               ADD_FAILURE() << "a socket that is gone has no user";
                               return true;
                             }});
  std::unique_ptr<Stream> accepted;
  auto listener = test::Listen(loop, test::Loopback(), [&](std::unique_ptr<Stream> stream) {
    accepted = std::move(stream);
  });
  Fd client = test::ConnectTo(listener->address());
  ASSERT_TRUE(Eventually([&] { return accepted != nullptr; }));
  linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  client.Reset();
  server->Adopt(std::move(accepted), ClientHandshake::FirstBytes());
  EXPECT_EQ(server->connection_count(), 0u);
  EXPECT_TRUE(HasLogged("its socket on this host is closed"));
}

}  // namespace
}  // namespace rankrun::agent

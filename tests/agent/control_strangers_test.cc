#include <gmock/gmock.h>
#include <netinet/in.h>

#include "base/write_all.h"
#include "tests/agent/control_fixture.h"

// What is no rankrun of this job, on either side.

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

struct ControlStrangersTest : ControlTest {
  // What `client` gets until the server has closed it.
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
  // The next frame that the server sends to `client`.
  std::string ReadFrame(const Fd& client, FrameReader& reader) {
    std::string payload;
    EXPECT_TRUE(Eventually([&] {
      char byte;
      while (payload.empty() && recv(client.get(), &byte, 1, MSG_DONTWAIT) == 1) {
        std::string_view bytes(&byte, 1);
        auto frame = reader.Next(bytes);
        if (frame && *frame) payload = **frame;
      }
      return !payload.empty();
    }));
    return payload;
  }
  // Byte by byte, with a turn of the loop for each.
  void SendSlowly(const Fd& client, std::string_view bytes) {
    for (char byte : bytes) {
      WriteAll(client.get(), {&byte, 1});
      bool turned = false;
      loop.Post([&] { turned = true; });
      Eventually([&] { return turned; });
    }
  }
  // The failure of a link to a server that does `greet` with each connection.
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
                                      .opening_timeout = milliseconds(50)});
    EXPECT_TRUE(Eventually([&] { return !link.failures.empty(); }));
    EXPECT_EQ(link.ups, 0);
    return link.failures.front();
  }

  const JobSecret secret{"open sesame"};
};

TEST_F(ControlStrangersTest, AnOpeningMayComeByteByByte) {
  NotingServer server(loop, {.job_id = "job", .secret = "open sesame"});
  ASSERT_TRUE(server.Listen());
  Fd client = test::ConnectTo(server.address());
  DiallerOpening opening(secret, "job");
  FrameReader reader;
  SendSlowly(client, DiallerOpening::FirstBytes());
  ASSERT_FALSE(opening.TakeChallenge(ReadFrame(client, reader)));
  SendSlowly(client, EncodeFrame(opening.Hello("hi")) + EncodeFrame("one") + EncodeFrame("two"));
  EXPECT_FALSE(opening.TakeAnswer(ReadFrame(client, reader)));
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
  const std::string first = DiallerOpening::FirstBytes();
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

TEST_F(ControlStrangersTest, AnotherVersionIsToldOursAndClosed) {
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  Fd client = test::ConnectTo(server.address());
  WriteAll(client.get(), std::string(kControlPreamble) + '\7');
  std::string answer = ReadToEnd(client);
  EXPECT_THAT(answer, HasSubstr("version\1"));
  EXPECT_TRUE(HasLogged("it speaks version 7 of the control protocol, this one version 1"));
}

TEST_F(ControlStrangersTest, ATooLargeFrameEndsAnOpenConnection) {
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  JobSecret none("");
  DiallerOpening opening(none, "job");
  FrameReader reader;
  Fd client = test::ConnectTo(server.address());
  WriteAll(client.get(), DiallerOpening::FirstBytes());
  ASSERT_FALSE(opening.TakeChallenge(ReadFrame(client, reader)));
  WriteAll(client.get(), EncodeFrame(opening.Hello("hi")) + "\x7F\xFF\xFF\xFF");
  ASSERT_TRUE(Eventually([&] { return server.lost.size() == 1; }));
  EXPECT_THAT(server.lost.front().second, HasSubstr("over the limit of 1048576"));
}

TEST_F(ControlStrangersTest, HalfOpeningsEndAtTheirDeadline) {
  NotingServer server(
      loop, {.job_id = "job", .secret = "", .opening_timeout = std::chrono::milliseconds(30)});
  ASSERT_TRUE(server.Listen());
  Fd silent = test::ConnectTo(server.address());
  Fd half = test::ConnectTo(server.address());
  WriteAll(half.get(), std::string_view(kControlPreamble).substr(0, 3));
  Fd greeted = test::ConnectTo(server.address());
  WriteAll(greeted.get(), DiallerOpening::FirstBytes() + std::string(2, '\0'));
  for (const Fd* client : {&silent, &half, &greeted}) ReadToEnd(*client);
  EXPECT_EQ(server->connection_count(), 0u);
  EXPECT_TRUE(HasLogged("no hello came within 0.030 s"));
}

TEST_F(ControlStrangersTest, OneAddressOpensOnlySoManyAtOnce) {
  NotingServer server(loop, {.job_id = "job", .secret = "", .openings_per_address = 4});
  ASSERT_TRUE(server.Listen());
  std::vector<Fd> silent;
  for (int i = 0; i < 4; ++i) silent.push_back(test::ConnectTo(server.address()));
  ASSERT_TRUE(Eventually([&] { return server->connection_count() == 4; }));
  Fd one_more = test::ConnectTo(server.address());
  EXPECT_EQ(ReadToEnd(one_more), "");
  EXPECT_TRUE(HasLogged("4 of its address are being opened"));
  silent.clear();
  ASSERT_TRUE(Eventually([&] { return server->connection_count() == 0; }));
  NotingLink first(loop, {server.endpoint()});
  std::vector<std::unique_ptr<NotingLink>> links;
  for (int i = 0; i < 20; ++i) {  // those that are refused come again
    links.push_back(std::make_unique<NotingLink>(loop, std::vector{server.endpoint()}));
  }
  EXPECT_TRUE(Eventually([&] { return server.hellos.size() == 21; }));
}

TEST_F(ControlStrangersTest, APeerThatDoesNotReadIsLost) {
  NotingServer server(loop, {.job_id = "job", .secret = "", .unsent_bytes = size_t{2} << 20});
  ASSERT_TRUE(server.Listen());
  JobSecret none("");
  DiallerOpening opening(none, "job");
  FrameReader reader;
  Fd client = test::ConnectTo(server.address());
  WriteAll(client.get(), DiallerOpening::FirstBytes());
  ASSERT_FALSE(opening.TakeChallenge(ReadFrame(client, reader)));
  WriteAll(client.get(), EncodeFrame(opening.Hello("hi")));
  ASSERT_TRUE(Eventually([&] { return server.hellos.size() == 1; }));
  const PeerId id = server.hellos.front().first;
  const std::string large(kMostFrameBytes, 'x');
  for (int i = 0; i < 64 && server->connection_count() == 1; ++i) {
    server->Send(id, large);
    EXPECT_TRUE(server.lost.empty()) << "told inside Send";
    if (i % 8 == 7) Turn();
  }
  ASSERT_TRUE(Eventually([&] { return server.lost.size() == 1; }));
  EXPECT_THAT(server.lost.front().second, HasSubstr("does not read: "));
}

TEST_F(ControlStrangersTest, ACoordinatorThatDoesNotReadIsGivenUp) {
  JobSecret none("");
  ServerOpening opening(none, "job");
  std::unique_ptr<Stream> server;
  FrameReader reader;
  auto listener = test::Listen(loop, test::Loopback(), [&](std::unique_ptr<Stream> stream) {
    if (server) return;
    server = std::move(stream);
    server->Write(EncodeFrame(opening.Challenge()));
    auto on_data = [&](std::span<const char> data) {
      std::string_view bytes(data.data(), data.size());
      if (bytes.starts_with(kControlPreamble)) bytes.remove_prefix(kFirstBytes);
      auto hello = reader.Next(bytes);
      if (!hello || !*hello) return;
      server->Write(EncodeFrame(opening.Judge(**hello)->answer));
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
  const std::string large(kMostFrameBytes, 'x');
  for (int i = 0; i < 64; ++i) link->Send(large);
  EXPECT_TRUE(link.downs.empty()) << "told inside Send";
  ASSERT_TRUE(Eventually([&] { return link.downs.size() == 1; }));
  EXPECT_THAT(link.downs.front(), HasSubstr("does not read: "));
}

TEST_F(ControlStrangersTest, WhateverElseAnswersIsTold) {
  DialFailure failure = FailureOf([](Stream& stream) { stream.Write("HTTP/1.1 400 Bad\r\n\r\n"); });
  EXPECT_EQ(failure.verdict, DialVerdict::kNotRankrun);
  EXPECT_EQ(failure.why, "what answers there is no rankrun");

  failure = FailureOf([](Stream&) {}, /*keep=*/false);
  EXPECT_TRUE(failure.verdict == DialVerdict::kNotRankrun || failure.verdict == DialVerdict::kReset)
      << failure.why;

  failure = FailureOf([](Stream&) {});
  EXPECT_EQ(failure.verdict, DialVerdict::kNotRankrun);
  EXPECT_THAT(failure.why, HasSubstr("says nothing within 0.050 s"));

  JobSecret none("");
  ServerOpening opening(none, "job");
  failure = FailureOf([&](Stream& stream) {
    stream.Write(EncodeFrame(opening.Challenge()) + EncodeFrame("no answer"));
  });
  EXPECT_EQ(failure.verdict, DialVerdict::kNotRankrun);

  failure = FailureOf([&](Stream& stream) {
    std::string challenge = opening.Challenge();
    challenge.back() = '\7';  // the version
    stream.Write(EncodeFrame(challenge));
  });
  EXPECT_EQ(failure.verdict, DialVerdict::kOtherVersion);
  EXPECT_THAT(failure.why, HasSubstr("speaks version 7 of the control protocol"));
}

}  // namespace
}  // namespace rankrun::agent

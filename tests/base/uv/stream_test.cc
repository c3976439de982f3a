#include <gtest/gtest.h>

#include <thread>

#include "base/write_all.h"
#include "tests/base/uv/loopback.h"
#include "tests/base/uv/ready.h"

namespace rankrun {
namespace {

using test::Pattern;

constexpr size_t kMiB = 1024 * 1024;

struct StreamTest : testing::Test {
  StreamTest() {
    signal(SIGPIPE, SIG_IGN);
    listener = test::Listen(loop, test::Loopback(),
                            [this](std::unique_ptr<Stream> s) { server = std::move(s); });
    client = test::ConnectTo(listener->address());
    EXPECT_TRUE(loop.RunUntil([this] { return server != nullptr; }, test::kLong));
  }

  void Start() {
    server->Start(
        {.on_data =
             [this](std::span<const char> bytes) { received.append(bytes.data(), bytes.size()); },
         .on_end =
             [this](std::optional<Error> error) {
               ends += 1;
               end_error = std::move(error);
             },
         .on_drained = [this] { drains += 1; }});
  }

  // Resets the connection from the client's side.
  void ResetClient() {
    linger at_once{1, 0};
    setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    client.Reset();
  }

  // Writes until the kernel accepts no more. Returns the number of bytes
  // written.
  size_t WriteUntilQueued() {
    size_t written = 0;
    while (server->queued_bytes() == 0 && written < 64 * kMiB) {
      server->Write(Pattern(kMiB));
      written += kMiB;
    }
    return written;
  }

  Loop loop;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Stream> server;
  Fd client;
  std::string received;
  int ends = 0;
  int drains = 0;
  std::optional<Error> end_error;
};

TEST_F(StreamTest, BytesGoBothWays) {
  Start();
  WriteAll(client.get(), "ping");
  ASSERT_TRUE(loop.RunUntil([&] { return received == "ping"; }, test::kLong));
  server->Write("po");
  server->Write("ng");
  char answer[4];
  ASSERT_EQ(recv(client.get(), answer, 4, MSG_WAITALL), 4);
  EXPECT_EQ(std::string(answer, 4), "pong");
  EXPECT_EQ(ends, 0);
}

TEST_F(StreamTest, NothingIsDeliveredBeforeStart) {
  WriteAll(client.get(), "early");
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(received, "");
  Start();
  EXPECT_EQ(received, "") << "inside the call that registered it";
  EXPECT_TRUE(loop.RunUntil([&] { return received == "early"; }, test::kLong));
}

TEST_F(StreamTest, ALargeTransferComesBackWhole) {
  std::string sent = Pattern(24 * kMiB);
  std::string echoed;
  server->Start({.on_data =
                     [this](std::span<const char> bytes) {
                       server->Write(std::string(bytes.data(), bytes.size()));
                     },
                 .on_end = [this](std::optional<Error>) { ends += 1; },
                 .on_drained = nullptr});
  std::thread writer([&] { WriteAll(client.get(), sent); });
  std::thread reader([&] {
    echoed.resize(sent.size());
    ssize_t count = recv(client.get(), echoed.data(), echoed.size(), MSG_WAITALL);
    echoed.resize(count < 0 ? 0 : static_cast<size_t>(count));
    client.Reset();
  });
  EXPECT_TRUE(loop.RunUntil([&] { return ends == 1; }, test::kLong));
  writer.join();
  reader.join();
  EXPECT_TRUE(echoed == sent);
}

TEST_F(StreamTest, ASlowReaderShowsInQueuedBytes) {
  Start();
  size_t written = WriteUntilQueued();
  ASSERT_GT(server->queued_bytes(), 0u);
  test::RunReadyCallbacks(loop);
  EXPECT_GT(server->queued_bytes(), 0u);
  EXPECT_EQ(drains, 0);
  server->Write("more");  // queued behind the rest
  written += 4;
  std::string got(written, '\0');
  std::thread reader([&] { recv(client.get(), got.data(), written, MSG_WAITALL); });
  EXPECT_TRUE(loop.RunUntil([&] { return drains > 0; }, test::kLong));
  EXPECT_EQ(server->queued_bytes(), 0u);
  reader.join();
  EXPECT_TRUE(got.starts_with(Pattern(kMiB)));
  EXPECT_TRUE(got.ends_with("more"));
  EXPECT_EQ(drains, 1);
}

TEST_F(StreamTest, PauseHoldsThePeerUpAndResumeLosesNothing) {
  Start();
  server->PauseReading();
  std::string sent = Pattern(kMiB);
  size_t total = 0;
  auto send_more = [&] {
    std::string_view rest = std::string_view(sent).substr(total % kMiB);
    ssize_t count = send(client.get(), rest.data(), rest.size(), MSG_DONTWAIT);
    if (count > 0) total += static_cast<size_t>(count);
    return count > 0;
  };
  while (send_more() && total < 256 * kMiB) {
  }
  EXPECT_LT(total, 256 * kMiB) << "the peer was not held back";
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(received, "");
  server->ResumeReading();
  server->ResumeReading();
  ASSERT_TRUE(loop.RunUntil([&] { return received.size() == total; }, test::kLong));
  for (size_t at = 0; at < total; at += kMiB) {
    ASSERT_TRUE(received.compare(at, kMiB, sent, 0, std::min(kMiB, total - at)) == 0) << at;
  }
}

TEST_F(StreamTest, ThePeersCloseIsAnEndWithoutError) {
  Start();
  WriteAll(client.get(), "last words");
  client.Reset();
  ASSERT_TRUE(loop.RunUntil([&] { return ends > 0; }, test::kLong));
  EXPECT_EQ(received, "last words");
  EXPECT_FALSE(end_error);
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(ends, 1);
}

TEST_F(StreamTest, ThePeersResetIsAnEndWithAnError) {
  std::string peer = SocketAddress::LocalOf(client.get())->ToString();
  Start();
  ResetClient();
  ASSERT_TRUE(loop.RunUntil([&] { return ends > 0; }, test::kLong));
  ASSERT_TRUE(end_error);
  EXPECT_EQ(end_error->code, ErrorCode::kSystem);
  EXPECT_EQ(end_error->message, "read from " + peer + ": Connection reset by peer");
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(ends, 1);
}

TEST_F(StreamTest, AWriteReportsABrokenConnectionToo) {
  Start();
  server->PauseReading();
  ResetClient();
  for (int i = 0; i < 3; ++i) server->Write("into the void");
  ASSERT_TRUE(loop.RunUntil([&] { return ends > 0; }, test::kLong));
  EXPECT_TRUE(end_error);
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(ends, 1);
}

TEST_F(StreamTest, AResetWithWritesQueuedIsOneEnd) {
  Start();
  WriteUntilQueued();
  for (int i = 0; i < 5; ++i) server->Write(Pattern(1000));
  ResetClient();
  ASSERT_TRUE(loop.RunUntil([&] { return ends > 0; }, test::kLong));
  EXPECT_TRUE(end_error);
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(drains, 0);
}

TEST_F(StreamTest, WritesAfterTheEndAreIgnored) {
  Start();
  ResetClient();
  ASSERT_TRUE(loop.RunUntil([&] { return ends > 0; }, test::kLong));
  server->Write("anybody?");
  server->ResumeReading();
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(server->queued_bytes(), 0u);
  EXPECT_EQ(ends, 1);
}

TEST_F(StreamTest, DroppedWithQueuedWritesItReportsNothingMore) {
  Start();
  WriteUntilQueued();
  WriteAll(client.get(), "hello");
  server.reset();
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(ends, 0);
  EXPECT_EQ(drains, 0);
  EXPECT_EQ(received, "");
}

TEST_F(StreamTest, DroppedItClosesTheConnection) {
  Start();
  server->Write("bye");
  server.reset();
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(test::ReadToEnd(client.get()), "bye");
}

TEST_F(StreamTest, NothingToWriteIsNoWrite) {
  Start();
  server->Write("");
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(server->queued_bytes(), 0u);
  EXPECT_EQ(drains, 0);
}

}  // namespace
}  // namespace rankrun

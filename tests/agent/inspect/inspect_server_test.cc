#include "agent/inspect/inspect_server.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/uv/uv_loop.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct InspectServerTest : testing::Test {
  InspectServerTest() {
    char name[] = "/tmp/rankrun_test_XXXXXX";
    folder = mkdtemp(name);
  }
  ~InspectServerTest() override { std::filesystem::remove_all(folder); }

  void Open(const InspectLimits& limits = {}) {
    auto socket = ListenForInspection({{folder}}, geteuid(), "job.7");
    ASSERT_TRUE(socket);
    path = socket->path;
    server = std::make_unique<InspectServer>(
        loop, *std::move(socket),
        [this](InspectServer::ClientId id, const std::string& line) {
          lines.push_back(line);
          if (answers_late) return late.push_back(id);
          server->SendLast(id, answer.empty() ? "answer to " + line : answer);
        },
        limits);
    ASSERT_TRUE(server->Start());
  }

  Fd Connect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  static void Write(const Fd& fd, const std::string& bytes) {
    EXPECT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Reads until `enough` holds or the server has closed the connection.
  std::string ReadUntil(const Fd& fd, const std::function<bool(const std::string&)>& enough) {
    std::string text;
    bool is_closed = false;
    loop.RunUntil(
        [&] {
          char buffer[65536];
          ssize_t count = 0;
          while ((count = recv(fd.get(), buffer, sizeof buffer, 0)) > 0) {
            text.append(buffer, static_cast<size_t>(count));
          }
          is_closed = count == 0 || errno != EAGAIN;
          if (!is_closed) wake.Start(milliseconds(1));  // RunUntil looks again
          return is_closed || enough(text);
        },
        milliseconds(20'000));
    return is_closed ? text + "<closed>" : text;
  }
  std::string ReadLine(const Fd& fd) {
    return ReadUntil(fd, [](const std::string& text) { return text.ends_with('\n'); });
  }
  std::string ReadAll(const Fd& fd) {
    return ReadUntil(fd, [](const std::string&) { return false; });
  }

  Loop loop;
  Timer wake{loop, [] {}};
  std::string folder;
  std::string path;
  std::string answer;
  bool answers_late = false;  // `late` has the clients that wait
  std::vector<InspectServer::ClientId> late;
  std::vector<std::string> lines;
  std::unique_ptr<InspectServer> server;
};

TEST_F(InspectServerTest, EachLineIsARequest) {
  Open();
  Fd client = Connect();
  Write(client, "one\ntw");
  EXPECT_EQ(ReadLine(client), "answer to one\n");
  Write(client, "o\n");
  EXPECT_EQ(ReadLine(client), "answer to two\n");
  EXPECT_THAT(lines, ElementsAre("one", "two"));
}

TEST_F(InspectServerTest, TheSocketIsForItsUserAndGoesWithTheServer) {
  Open();
  EXPECT_TRUE(std::filesystem::exists(path));
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(InspectServerTest, AClientThatEndsIsForgotten) {
  Open();
  {
    Fd client = Connect();
    Write(client, "one\n");
    ReadLine(client);
    EXPECT_EQ(server->client_count(), 1u);
  }
  EXPECT_TRUE(loop.RunUntil([&] { return server->client_count() == 0; }, milliseconds(20'000)));
}

TEST_F(InspectServerTest, ARequestThatIsTooLongIsAnsweredAndItsClientDropped) {
  Open({.request_bytes = 100});
  Fd client = Connect();
  Write(client, std::string(150, 'x'));
  EXPECT_THAT(ReadAll(client), StartsWith(R"({"error":"wrong request: longer than 100 bytes"})"));
  EXPECT_TRUE(lines.empty());
}

TEST_F(InspectServerTest, ClientsBeyondTheLimitAreTurnedAway) {
  Open({.clients = 2});
  Fd first = Connect();
  Fd second = Connect();
  Write(first, "one\n");
  Write(second, "two\n");
  ReadLine(first);
  ReadLine(second);
  Fd third = Connect();
  EXPECT_THAT(ReadAll(third), HasSubstr("the agent has too many clients already"));
}

TEST_F(InspectServerTest, AClientThatReadsSlowlyGetsAllOfALongAnswer) {
  Open();
  answer = std::string(5 << 20, 'x');
  Fd client = Connect();
  Write(client, "one\n");
  EXPECT_EQ(ReadLine(client).size(), answer.size() + 1);
}

TEST_F(InspectServerTest, AClientThatNeverReadsIsDroppedAtTheLimitOfMemory) {
  Open({.queued_bytes = 4 << 20});
  answer = std::string(1 << 20, 'x');
  Fd client = Connect();
  for (int i = 0; i < 10; ++i) Write(client, "one\n");
  EXPECT_TRUE(loop.RunUntil([&] { return !lines.empty() && server->client_count() == 0; },
                            milliseconds(20'000)));
  EXPECT_LE(lines.size(), 6u);
}

TEST_F(InspectServerTest, AClientThatNeverReadsIsDroppedAfterAWhile) {
  Open({.stall = milliseconds(100)});
  answer = std::string(4 << 20, 'x');
  Fd client = Connect();
  Write(client, "one\n");
  EXPECT_TRUE(loop.RunUntil([&] { return !lines.empty() && server->client_count() == 0; },
                            milliseconds(20'000)));
}

TEST_F(InspectServerTest, ASilentClientIsDroppedAfterAWhile) {
  Open({.silence = milliseconds(100)});
  Fd client = Connect();
  EXPECT_EQ(ReadAll(client), "<closed>");
}

TEST_F(InspectServerTest, AClientThatSendsNoMoreGetsItsAnswers) {
  Open();
  Fd client = Connect();
  Write(client, "one\ntwo\n");
  shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(ReadAll(client), "answer to one\nanswer to two\n<closed>");
}

TEST_F(InspectServerTest, ALateAnswerReachesAClientThatSendsNoMore) {
  answers_late = true;
  Open();
  Fd client = Connect();
  Write(client, "one\n");
  shutdown(client.get(), SHUT_WR);
  ASSERT_TRUE(loop.RunUntil([&] { return !late.empty(); }, milliseconds(20'000)));
  wake.Start(milliseconds(20));  // the server learns that the client sends no more
  loop.RunUntil([] { return false; }, milliseconds(40));
  server->Send(late[0], "first");
  server->SendLast(late[0], "last");
  EXPECT_EQ(ReadAll(client), "first\nlast\n<closed>");
}

TEST_F(InspectServerTest, AClientThatIsAlwaysALittleBehindCostsLittleMemory) {
  answers_late = true;
  Open();
  Fd client = Connect();
  Write(client, "one\n");
  ASSERT_TRUE(loop.RunUntil([&] { return !late.empty(); }, milliseconds(20'000)));
  const std::string line(64 * 1024 - 1, 'x');
  size_t sent = 0;
  size_t most = 0;
  std::vector<char> buffer(64 * 1024);
  for (size_t received = 0; received < size_t{16} << 20;) {
    while (sent < received + (size_t{1} << 20)) {  // 1 MiB ahead
      server->Send(late[0], line);
      sent += line.size() + 1;
    }
    loop.RunUntil([] { return true; }, milliseconds(1));
    ssize_t count = recv(client.get(), buffer.data(), buffer.size(), 0);
    ASSERT_GT(count, 0);
    received += static_cast<size_t>(count);
    most = std::max(most, server->buffered_bytes());
  }
  EXPECT_GT(most, size_t{256} << 10) << "the client was behind";
  EXPECT_LT(most, size_t{4} << 20);
}

}  // namespace
}  // namespace rankrun::agent

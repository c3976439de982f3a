#include "cli/jobs/job_client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "base/fd.h"

namespace rankrun::cli {
namespace {

// An agent whose answers are written before it is asked.
struct JobClientTest : ::testing::Test {
  ~JobClientTest() override { std::filesystem::remove_all(folder); }

  // Connects the client to the agent.
  bool Connect() {
    if (mkdtemp(folder) == nullptr) return false;
    const std::string path = std::string(folder) + "/job.7";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener.get(), 1) != 0) {
      return false;
    }
    auto connected = JobClient::Connect(path, getpid());
    if (!connected) return false;
    client.emplace(*std::move(connected));
    agent.Reset(accept(listener.get(), nullptr, nullptr));
    return static_cast<bool>(agent);
  }
  void Write(const std::string& lines) const {
    EXPECT_EQ(write(agent.get(), lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
  }

  char folder[32] = "/tmp/rankrun_test_XXXXXX";
  std::optional<JobClient> client;
  Fd agent;
};

constexpr const char* kTwoAnswers =
    "{\"node\":\"a\",\"answer\":{}}\n"
    "{\"node\":\"b\",\"answer\":{}}\n";

TEST_F(JobClientTest, WaitsForTheEndOfAllAnswers) {
  ASSERT_TRUE(Connect());
  Write(kTwoAnswers + std::string("{\"over\":true,\"missing\":[\"c\"],\"note\":\"why\"}\n"));
  auto answers = client->Ask({});
  ASSERT_TRUE(answers) << answers.error().message;
  ASSERT_EQ(answers->nodes.size(), 2U);
  EXPECT_EQ(answers->missing, std::vector<std::string>{"c"});
  EXPECT_EQ(answers->note, "why");
}

TEST_F(JobClientTest, ANodeWhoseAnswerIsNotNeededIsNotWaitedFor) {
  ASSERT_TRUE(Connect());
  Write(kTwoAnswers);
  auto answers = client->Ask({}, [](const NodeAnswer& answer) { return answer.node == "b"; });
  ASSERT_TRUE(answers) << answers.error().message;
  EXPECT_EQ(answers->nodes.size(), 2U);
}

}  // namespace
}  // namespace rankrun::cli

#include "store/hosted_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <set>
#include <thread>

#include "tests/base/support.h"
#include "tests/store/raw_client.h"
#include "tests/store/server_thread.h"

namespace rankrun::store {
namespace {

using testing::HasSubstr;

ServerOptions At(uint16_t port) {
  ServerOptions options;
  options.addresses = {{Loopback(port)}};
  return options;
}

TEST(HostedServerTest, ServesFromTheStartToItsEnd) {
  auto server = HostedServer::Start(At(0));
  ASSERT_TRUE(server) << server.error().message;
  RawClient client(Loopback((*server)->port()));
  EXPECT_TRUE(client.IsServed());
  server->reset();
  EXPECT_TRUE(client.IsClosed());
}

TEST(HostedServerTest, APortThatIsTakenIsAnError) {
  auto server = HostedServer::Start(At(0));
  ASSERT_TRUE(server) << server.error().message;
  auto second = HostedServer::Start(At((*server)->port()));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kSystem);
  EXPECT_THAT(second.error().message, HasSubstr("listen on 127.0.0.1:"));
}

std::set<std::string> Threads() {
  std::set<std::string> paths;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    paths.insert(task.path());
  }
  return paths;
}

// A signal of the program is for a thread that expects it.
TEST(HostedServerTest, ItsThreadTakesNoSignals) {
  std::thread([] {}).join();  // a sanitizer's own thread comes with the first
  const std::set<std::string> before = Threads();
  auto server = HostedServer::Start(At(0));
  ASSERT_TRUE(server) << server.error().message;
  int made = 0;
  for (const std::string& path : Threads()) {
    if (before.contains(path)) continue;
    made += 1;
    const std::string status = test::ReadWholeFile(path + "/status");
    const uint64_t blocked =
        std::stoull(status.substr(status.find("SigBlk:") + sizeof "SigBlk:"), nullptr, 16);
    for (int signal_number : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGUSR1, SIGALRM}) {
      EXPECT_NE(blocked & uint64_t{1} << (signal_number - 1), 0U) << signal_number;
    }
  }
  EXPECT_EQ(made, 1);
  sigset_t ours;
  pthread_sigmask(SIG_SETMASK, nullptr, &ours);
  EXPECT_EQ(sigismember(&ours, SIGTERM), 0);
}

}  // namespace
}  // namespace rankrun::store

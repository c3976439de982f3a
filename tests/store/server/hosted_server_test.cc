#include "store/server/hosted_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/base/support.h"
#include "tests/store/clients/fake_server.h"
#include "tests/store/server/raw_client.h"
#include "tests/store/server/server_thread.h"

namespace rankrun::store {
namespace {

using testing::HasSubstr;

ServerOptions At(uint16_t port) {
  ServerOptions options;
  options.addresses = {{Loopback(port)}};
  return options;
}

TEST(HostedServerTest, ServesFromItsStartToItsEnd) {
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

TEST(HostedServerTest, ServesOnASocketThatItIsGiven) {
  ServerOptions options;
  options.listen_fd = BoundSocket().Release();
  uint16_t port = SocketAddress::LocalOf(options.listen_fd)->port();
  auto server = HostedServer::Start(options);
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_EQ((*server)->port(), port);
  EXPECT_TRUE(RawClient(Loopback(port)).IsServed());
}

TEST(HostedServerTest, ClosesASocketOnWhichItCannotServe) {
  ServerOptions options;
  options.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto server = HostedServer::Start(options);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(server.error().message, HasSubstr(" is not bound: want a TCP socket"));
  EXPECT_FALSE(test::IsOpen(options.listen_fd));
}

// A signal must go to a thread that expects it.
TEST(HostedServerTest, ItsThreadTakesNoSignals) {
  auto server = HostedServer::Start(At(0));
  ASSERT_TRUE(server) << server.error().message;
  // The thread sets its name shortly after its start.
  ASSERT_TRUE(test::WaitFor([] { return test::ThreadsNamed("rankrun-store").size() == 1; }));
  for (const std::string& path : test::ThreadsNamed("rankrun-store")) {
    std::string status = test::ReadWholeFile(path + "/status");
    const uint64_t blocked =
        std::stoull(status.substr(status.find("SigBlk:") + sizeof "SigBlk:"), nullptr, 16);
    for (int signal_number : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGUSR1, SIGALRM}) {
      EXPECT_NE(blocked & uint64_t{1} << (signal_number - 1), 0U) << signal_number;
    }
  }
  sigset_t ours;
  pthread_sigmask(SIG_SETMASK, nullptr, &ours);
  EXPECT_EQ(sigismember(&ours, SIGTERM), 0);
}

}  // namespace
}  // namespace rankrun::store

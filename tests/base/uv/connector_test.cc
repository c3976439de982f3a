#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>

#include "base/uv/uv_connector.h"
#include "tests/base/uv/loopback.h"
#include "tests/base/uv/ready.h"

namespace rankrun {
namespace {

using std::chrono::milliseconds;

struct ConnectorTest : testing::Test {
  Connector::OnDone Keep() {
    return [this](Result<std::unique_ptr<Stream>> done) {
      calls += 1;
      if (done) {
        stream = std::move(*done);
      } else {
        error = done.error();
      }
    };
  }
  bool RunUntilDone() {
    return loop.RunUntil([this] { return calls > 0; }, test::kLong);
  }
  // Returns a port of this host on which no process listens.
  SocketAddress FreePort() { return test::Listen(loop, test::Loopback(), {})->address(); }

  Loop loop;
  int calls = 0;
  std::unique_ptr<Stream> stream;
  std::optional<Error> error;
};

TEST_F(ConnectorTest, AConnectionCarriesBytes) {
  std::unique_ptr<Stream> accepted;
  auto listener = test::Listen(loop, test::Loopback(),
                               [&](std::unique_ptr<Stream> s) { accepted = std::move(s); });
  Connector connector(loop, listener->address(), test::kLong, Keep());
  EXPECT_EQ(calls, 0);
  ASSERT_TRUE(RunUntilDone());
  ASSERT_TRUE(stream) << error->message;
  EXPECT_EQ(stream->peer().ToString(), listener->address().ToString());
  ASSERT_TRUE(loop.RunUntil([&] { return accepted != nullptr; }, test::kLong));
  EXPECT_EQ(stream->LocalAddress()->ToString(), accepted->peer().ToString());
  std::string received;
  accepted->Start(
      {.on_data = [&](std::span<const char> bytes) { received.append(bytes.data(), bytes.size()); },
       .on_end = {},
       .on_drained = {}});
  stream->Write("hello");
  EXPECT_TRUE(loop.RunUntil([&] { return received == "hello"; }, test::kLong));
  EXPECT_EQ(calls, 1);
}

TEST_F(ConnectorTest, APortWithoutAListenerRefuses) {
  SocketAddress address = FreePort();
  Connector connector(loop, address, test::kLong, Keep());
  EXPECT_EQ(calls, 0);
  ASSERT_TRUE(RunUntilDone());
  ASSERT_TRUE(error);
  EXPECT_EQ(connector.failure(), ECONNREFUSED);
  EXPECT_EQ(error->message, "connect to " + address.ToString() + ": Connection refused");
}

// With a full backlog, the kernel drops connection requests.
TEST_F(ConnectorTest, WithoutAnAnswerItEndsAtItsDeadline) {
  Fd full(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress any = test::Loopback();
  ASSERT_EQ(bind(full.get(), any.raw(), any.raw_size()), 0);
  ASSERT_EQ(listen(full.get(), 0), 0);
  SocketAddress address = *SocketAddress::LocalOf(full.get());
  Fd first = test::ConnectTo(address);
  Connector connector(loop, address, milliseconds(30), Keep());
  ASSERT_TRUE(RunUntilDone());
  ASSERT_TRUE(error) << "a full backlog accepted one more";
  EXPECT_EQ(connector.failure(), ETIMEDOUT);
  EXPECT_EQ(error->code, ErrorCode::kTimeout);
}

TEST_F(ConnectorTest, AnImmediateFailureIsReportedLater) {
  Connector connector(loop, *SocketAddress::FromNumeric("255.255.255.255", 1), test::kLong, Keep());
  EXPECT_EQ(calls, 0);
  ASSERT_TRUE(RunUntilDone());
  ASSERT_TRUE(error);
  EXPECT_NE(connector.failure(), 0);
}

TEST_F(ConnectorTest, EndedEarlyItReportsNothing) {
  auto listener = test::Listen(loop, test::Loopback(), [](std::unique_ptr<Stream>) {});
  for (const SocketAddress& address : {listener->address(), FreePort()}) {
    auto connector = std::make_unique<Connector>(loop, address, test::kLong, Keep());
    connector.reset();
  }
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(calls, 0);
}

// The kernel may choose the dialled port as the source port. It then connects
// the socket to itself.
TEST_F(ConnectorTest, AConnectionToItselfIsRefused) {
  SocketAddress address = FreePort();
  for (int i = 0; i < 200; ++i) {
    calls = 0;
    Connector connector(loop, address, test::kLong, Keep());
    ASSERT_TRUE(RunUntilDone());
    ASSERT_FALSE(stream) << i;
    ASSERT_EQ(connector.failure(), ECONNREFUSED);
  }
}

}  // namespace
}  // namespace rankrun

#include "agent/control/control_link.h"

#include <gmock/gmock.h>

#include <future>

#include "store/server/server.h"
#include "tests/agent/control/control_fixture.h"
#include "tests/free_port.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

struct ControlLinkTest : ControlTest {
  // Returns a port of this host at which nobody listens.
  Endpoint Nobody() {
    NotingServer gone(loop);
    EXPECT_TRUE(gone.Listen());
    return gone.endpoint();
  }
};

TEST_F(ControlLinkTest, MessagesGoBothWaysInOrder) {
  NotingServer server(loop);
  server.echoes = true;
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, {server.endpoint()});
  link->Send("dropped: the link is down");
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  EXPECT_EQ(server.hellos.size(), 1u);
  EXPECT_EQ(server.hellos.front().second, "hello 1");
  std::string large(kMaxMessageBytes, 'x');
  for (const std::string& message : {std::string("one"), std::string(), large}) link->Send(message);
  ASSERT_TRUE(Eventually([&] { return link.messages.size() == 3; }));
  EXPECT_TRUE((link.messages == std::vector<std::string>{"one", "", large}));
  EXPECT_TRUE(link.downs.empty());
}

TEST_F(ControlLinkTest, AFurtherEndpointIsDialledAfterTheFirst) {
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  const Endpoint refused{"127.0.0.1", static_cast<uint16_t>(test::FreePort())};
  NotingLink link(loop, {refused});
  ASSERT_TRUE(Eventually([&] { return !link->failures().empty(); }));
  link->SetEndpoints({refused, server.endpoint()});
  EXPECT_TRUE(Eventually([&] { return link.ups == 1; }));
}

TEST_F(ControlLinkTest, AMessageThatNoFrameHoldsIsDropped) {
  NotingServer server(loop);
  server.echoes = true;
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, {server.endpoint()});
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  link->Send(std::string(kMaxMessageBytes + 1, 'x'));
  server->Send(server.hellos.front().first, std::string(kMaxMessageBytes + 1, 'x'));
  link->Send("next");
  ASSERT_TRUE(Eventually([&] { return link.messages.size() == 1; }));
  EXPECT_THAT(link.messages, ElementsAre("next"));
}

TEST_F(ControlLinkTest, BothKnowByWhichAddressTheyMeet) {
  NotingServer server(loop);
  ASSERT_TRUE(server->Listen(0));
  NotingLink link(loop, {{"127.0.0.1", server->port()}});
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  ASSERT_TRUE(link->local_address());
  EXPECT_EQ(link->local_address()->ToString(), server.peers.front());
  EXPECT_EQ(server.locals.front(), "127.0.0.1:" + std::to_string(server->port()));
}

TEST_F(ControlLinkTest, AServerOnAllInterfacesIsReachedByIpv6) {
  if (!test::HasIpv6()) GTEST_SKIP() << "no IPv6 on this machine";
  NotingServer server(loop);
  ASSERT_TRUE(server->Listen(0));
  NotingLink link(loop, {{"::1", server->port()}});
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  EXPECT_THAT(server.peers.front(), StartsWith("[::1]:"));
}

TEST_F(ControlLinkTest, ANameIsDialledByWhicheverAddressAnswers) {
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, {{"localhost", server->port()}});
  EXPECT_TRUE(Eventually([&] { return link.ups == 1; }));
}

TEST_F(ControlLinkTest, ALinkWithTheSecretComesUp) {
  NotingServer server(loop, {.job_id = "job", .secret = "open sesame"});
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, {server.endpoint()}, "open sesame");
  EXPECT_TRUE(Eventually([&] { return link.ups == 1; }));
}

TEST_F(ControlLinkTest, AWrongSecretIsReportedOnBothSides) {
  NotingServer server(loop, {.job_id = "job", .secret = "open sesame"});
  ASSERT_TRUE(server.Listen());
  NotingLink wrong(loop, {server.endpoint()}, "open, sesame");
  NotingLink none(loop, {server.endpoint()});
  ASSERT_TRUE(Eventually([&] { return !wrong.failures.empty() && !none.failures.empty(); }));
  EXPECT_EQ(wrong.failures[0].kind, DialFailureKind::kWrongSecret);
  EXPECT_EQ(wrong.failures[0].ToString(), server.address().ToString() + ": wrong job secret");
  EXPECT_EQ(none.failures[0].kind, DialFailureKind::kWrongSecret);
  EXPECT_EQ(none.failures[0].why, "the job there has a secret, this node has none");
  EXPECT_TRUE(HasLogged(": wrong job secret"));
  EXPECT_TRUE(HasLogged(": this job has a secret, the node has none"));
  for (const std::string& line : log.Get()) EXPECT_THAT(line, Not(HasSubstr("sesame")));
  EXPECT_TRUE(server.hellos.empty());
}

// A link that gets the secret out of the server's credential by `open`.
LinkOptions WithMunge(const Endpoint& endpoint,
                      std::function<Result<std::string>(const std::string&)> open) {
  return {.endpoints = {endpoint},
          .job_id = "job",
          .secret = "of this node, for its own job",
          .make_hello = {},
          .open_credential = std::move(open)};
}

TEST_F(ControlLinkTest, ACredentialHandsTheSecretOver) {
  NotingServer server(loop, {.job_id = "job", .secret = "open sesame", .credential = "credential"});
  server.echoes = true;
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, WithMunge(server.endpoint(), [](const std::string& credential) {
                    return Result<std::string>(credential == "credential" ? "open sesame" : "");
                  }));
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  link->Send("hi");
  EXPECT_TRUE(Eventually([&] { return link.messages.size() == 1; }));
}

TEST_F(ControlLinkTest, ACredentialThatCannotBeOpenedIsReported) {
  NotingServer server(loop, {.job_id = "job", .secret = "open sesame", .credential = "credential"});
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, WithMunge(server.endpoint(), [](const std::string&) -> Result<std::string> {
                    return Error{ErrorCode::kInvalid, "munge: Invalid credential"};
                  }));
  NotingLink other(loop, WithMunge(server.endpoint(), [](const std::string&) {
                     return Result<std::string>("that of a stranger");
                   }));
  ASSERT_TRUE(Eventually([&] { return !link.failures.empty() && !other.failures.empty(); }));
  EXPECT_EQ(link.failures[0].kind, DialFailureKind::kWrongSecret);
  EXPECT_EQ(link.failures[0].why, "munge: Invalid credential");
  EXPECT_EQ(other.failures[0].why, "wrong job secret");
  EXPECT_EQ(link.ups + other.ups, 0);
}

TEST_F(ControlLinkTest, MungeOnOneSideOnlyIsReported) {
  NotingServer with(loop, {.job_id = "job", .secret = "open sesame", .credential = "credential"});
  NotingServer without(loop, {.job_id = "job", .secret = "open sesame"});
  ASSERT_TRUE(with.Listen());
  ASSERT_TRUE(without.Listen());
  NotingLink lacks(loop, {with.endpoint()}, "open sesame");
  NotingLink has(loop, WithMunge(without.endpoint(), [](const std::string&) {
                   return Result<std::string>("open sesame");
                 }));
  ASSERT_TRUE(Eventually([&] { return !lacks.failures.empty() && !has.failures.empty(); }));
  EXPECT_EQ(lacks.failures[0].why, "the job there gets its secret by munge, this node does not");
  EXPECT_EQ(has.failures[0].why, "this node gets the job secret by munge, the job there does not");
}

TEST_F(ControlLinkTest, ALinkMayEndWhileACredentialIsOpened) {
  NotingServer server(loop, {.job_id = "job", .secret = "open sesame", .credential = "credential"});
  ASSERT_TRUE(server.Listen());
  std::promise<void> began, may_end;
  auto job = std::make_shared<int>();  // owned by the link, and by the pool until it is done
  std::weak_ptr<int> left = job;
  auto link =
      std::make_unique<NotingLink>(loop, WithMunge(server.endpoint(), [&, job](const std::string&) {
                                     began.set_value();
                                     may_end.get_future().wait();
                                     return Result<std::string>("open sesame");
                                   }));
  auto has_begun = began.get_future();
  ASSERT_TRUE(Eventually(
      [&] { return has_begun.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  link.reset();
  job.reset();
  may_end.set_value();
  ASSERT_TRUE(Eventually([&] { return left.expired() && server->connection_count() == 0; }));
  EXPECT_TRUE(server.hellos.empty());
}

TEST_F(ControlLinkTest, ASecretThatTheJobLacksIsReportedOnBothSides) {
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, {server.endpoint()}, "open sesame");
  ASSERT_TRUE(Eventually([&] { return !link.failures.empty(); }));
  EXPECT_EQ(link.failures[0].why, "this node has a job secret, the job there has none");
  EXPECT_TRUE(HasLogged(": the node has a job secret, this job has none"));
  EXPECT_EQ(link.ups, 0);
}

TEST_F(ControlLinkTest, AnotherJobAtTheEndpointIsReported) {
  NotingServer server(loop, {.job_id = "theirs", .secret = ""});
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, {server.endpoint()});
  ASSERT_TRUE(Eventually([&] { return !link.failures.empty(); }));
  EXPECT_EQ(link.failures[0].kind, DialFailureKind::kOtherJob);
  EXPECT_EQ(link.failures[0].why, "job \"theirs\" is there, this node is of job \"job\"");
  EXPECT_TRUE(HasLogged(": it belongs to job \"job\", this is job \"theirs\""));
}

TEST_F(ControlLinkTest, ItDialsUntilSomebodyListens) {
  Endpoint endpoint = Nobody();
  NotingLink link(loop, {endpoint});
  ASSERT_TRUE(Eventually([&] { return link.failures.size() >= 3; }));
  EXPECT_EQ(link.failures[0].kind, DialFailureKind::kRefused);
  std::string address = test::Loopback(endpoint.port).ToString();
  EXPECT_EQ(link.failures[0].ToString(), address + ": connection refused: nothing listens there");
  EXPECT_THAT(link->FailureText(MonotonicClock().Now() + std::chrono::seconds(12)),
              testing::ContainsRegex("nothing listens there \\(tried for 1[2-9]\\..* s\\)$"));
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen(endpoint.port));
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  EXPECT_EQ(link->FailureText(MonotonicClock().Now()), "");
}

TEST_F(ControlLinkTest, WhenTheServerComesBackItIsUpAgain) {
  auto server = std::make_unique<NotingServer>(loop);
  ASSERT_TRUE(server->Listen());
  Endpoint endpoint = server->endpoint();
  NotingLink link(loop, {endpoint});
  for (int times = 1; times <= 5; ++times) {
    ASSERT_TRUE(Eventually([&] { return link.ups == times; }));
    server.reset();
    ASSERT_TRUE(Eventually([&] { return link.downs.size() == static_cast<size_t>(times); }));
    EXPECT_THAT(link.downs.back(), HasSubstr("closed the connection"));
    server = std::make_unique<NotingServer>(loop);
    ASSERT_TRUE(server->Listen(endpoint.port));
  }
  ASSERT_TRUE(Eventually([&] { return link.ups == 6; }));
  EXPECT_EQ(server->hellos.back().second, "hello 6");
}

TEST_F(ControlLinkTest, TheNextEndpointIsDialledIfOneFails) {
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, {Nobody(), {"no such host", 1}, server.endpoint()});
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  ASSERT_EQ(link.failures.size(), 2u);
  EXPECT_EQ(link.failures[0].kind, DialFailureKind::kRefused);
  EXPECT_EQ(link.failures[1].kind, DialFailureKind::kNameLookup);
  EXPECT_THAT(link.failures[1].ToString(), StartsWith("no such host:1: look up no such host: "));
}

TEST_F(ControlLinkTest, ARedirectedLinkTakesTheOtherCoordinator) {
  NotingServer one(loop), other(loop);
  ASSERT_TRUE(one.Listen());
  ASSERT_TRUE(other.Listen());
  NotingLink link(loop, {one.endpoint()});
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  link->Redirect(other.endpoint());
  EXPECT_FALSE(link->is_up());
  ASSERT_TRUE(Eventually([&] { return link.ups == 2 && one.lost.size() == 1; }));
  EXPECT_EQ(other.hellos.size(), 1u);
  EXPECT_TRUE(link.downs.empty());
  link->Redirect(Nobody());
  ASSERT_TRUE(Eventually([&] { return link.ups == 3; }));
  EXPECT_EQ(one.hellos.size(), 2u);
}

TEST_F(ControlLinkTest, AClosedLinkCallsNothing) {
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, {server.endpoint()}), open_link(loop, {server.endpoint()});
  ASSERT_TRUE(Eventually([&] { return link.ups == 1 && open_link.ups == 1; }));
  link->Send("last words");
  link->Close();
  link->Send("too late");
  link->Redirect(server.endpoint());
  // The pauses before its dials get longer, so the second one ends after the
  // first pause of any link.
  for (int ups : {2, 3}) {
    open_link->Redirect(server.endpoint());
    ASSERT_TRUE(Eventually([&] { return open_link.ups == ups; }));
  }
  ASSERT_TRUE(Eventually([&] { return server.lost.size() == 3; }));
  EXPECT_THAT(server.messages, ElementsAre("last words"));
  EXPECT_EQ(link.ups, 1);
  EXPECT_TRUE(link.downs.empty());
}

TEST_F(ControlLinkTest, ARefusedMemberGetsTheReasonFirst) {
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  NotingLink link(loop, {server.endpoint()});
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  std::string reason(kMaxMessageBytes, 'r');
  server->Refuse(server.hellos.front().first, reason);
  server->Refuse(server.hellos.front().first, "no second one");
  ASSERT_TRUE(Eventually([&] { return !link.downs.empty(); }));
  ASSERT_EQ(link.messages.size(), 1u);
  EXPECT_TRUE(link.messages[0] == reason);
  EXPECT_TRUE(server.lost.empty());
}

TEST_F(ControlLinkTest, AStoreAndTheCoordinatorShareAPort) {
  NotingServer server(loop);
  store::ServerOptions options;
  options.addresses = {{test::Loopback()}};
  options.control = [&](std::unique_ptr<Stream> stream, std::string_view first_bytes) {
    server->Adopt(std::move(stream), first_bytes);
  };
  auto port_owner = store::Server::Listen(loop, std::move(options));
  ASSERT_TRUE(port_owner);
  NotingLink link(loop, {{"127.0.0.1", (*port_owner)->port()}});
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  (*port_owner)->Reset();
  server.echoes = true;
  link->Send("after the reset");
  ASSERT_TRUE(Eventually([&] { return !link.messages.empty(); }));
  EXPECT_EQ((*port_owner)->connection_count(), 0u);
  EXPECT_TRUE(link.downs.empty());
}

TEST_F(ControlLinkTest, APeerClosedInItsOwnMessageIsNotReported) {
  NotingServer server(loop);
  ASSERT_TRUE(server.Listen());
  server.then = [&](PeerId id) { server->Close(id); };
  NotingLink link(loop, {server.endpoint()});
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  for (int i = 0; i < 10; ++i) link->Send("message");
  ASSERT_TRUE(Eventually([&] { return link.ups == 2; }));
  EXPECT_EQ(server.messages.size(), 1u);
  EXPECT_TRUE(server.lost.empty());
}

TEST_F(ControlLinkTest, ALinkMayBeClosedOrRedirectedInItsCallbacks) {
  NotingServer server(loop), other(loop);
  ASSERT_TRUE(server.Listen());
  ASSERT_TRUE(other.Listen());
  NotingLink link(loop, {server.endpoint()});
  link.after_message = [&] { link->Redirect(other.endpoint()); };
  link.after_down = [&] { link->Close(); };
  ASSERT_TRUE(Eventually([&] { return link.ups == 1; }));
  for (int i = 0; i < 10; ++i) server->Send(server.hellos.front().first, "message");
  ASSERT_TRUE(Eventually([&] { return link.ups == 2; }));
  EXPECT_EQ(link.messages.size(), 1u);
  other->Close(other.hellos.front().first);
  ASSERT_TRUE(Eventually([&] { return link.downs.size() == 1; }));
  // The pauses before its dials get longer, so the third one ends after the
  // second pause of any link.
  NotingLink open_link(loop, {other.endpoint()});
  for (int ups : {1, 2, 3}) {
    ASSERT_TRUE(Eventually([&] { return open_link.ups == ups; }));
    other->Close(other.hellos.back().first);
  }
  ASSERT_TRUE(Eventually([&] { return open_link.ups == 4; }));
  EXPECT_EQ(link.ups, 2);
}

}  // namespace
}  // namespace rankrun::agent

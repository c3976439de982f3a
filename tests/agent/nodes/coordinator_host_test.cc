#include "agent/nodes/coordinator_host.h"

#include <gmock/gmock.h>

#include "agent/nodes/control_codec.h"
#include "tests/agent/control/control_fixture.h"
#include "tests/base/net/peer_user_probe.h"

namespace rankrun::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A coordinator and its only member, both on this host.
struct CoordinatorHostTest : ControlTest {
  explicit CoordinatorHostTest(bool is_strict = false) {
    spec.nodes.emplace().store_strict = is_strict;
    spec.run_id = "job";
    host = std::make_unique<CoordinatorHost>(
        loop, spec, 1, std::nullopt,
        CoordinatorHost::Callbacks{
            .keep = [](const CoordinatorRecord&) {},
            .on_retired = {},
            .on_decision = [this](const Announcement& decision) { Note(decision); }});
    EXPECT_TRUE(host->Listen(0));
    link = Connect();
  }

  std::unique_ptr<ControlLink> Connect() {
    LinkOptions options{.endpoints = {{"127.0.0.1", host->port()}},
                        .job_id = "job",
                        .secret = "",
                        .make_hello = [this] { return Encode(MemberMessage(MakeHello())); }};
    return std::make_unique<ControlLink>(
        loop, std::move(options),
        ControlLink::Callbacks{.on_up = {[] {}},
                               .on_message = [this](const std::string& bytes) { OnMessage(bytes); },
                               .on_down = [](const Error&) {},
                               .on_failed = {}});
  }

  Hello MakeHello() const {
    return {.node = 1, .name = "n1", .min_nodes = min_nodes, .addresses = addresses};
  }

  void OnMessage(const std::string& bytes) {
    auto message = DecodeCoordinatorMessage(bytes);
    ASSERT_TRUE(message) << message.error().message;
    if (const auto* prepare = std::get_if<Prepare>(&*message)) {
      link->Send(Encode(MemberMessage(Prepared{prepare->round, 5, own})));
    }
    if (const auto* start = std::get_if<StartRound>(&*message)) start_round = *start;
    if (const auto* refused = std::get_if<Refusal>(&*message)) refusal = *refused;
  }

  void Note(const Announcement& announcement) {
    const auto* refused = std::get_if<events::NodeRefused>(&announcement.decision);
    if (refused != nullptr) refusals.push_back(refused->node + ": " + refused->why);
  }

  JobSpec spec;
  std::vector<std::string> refusals;            // as events
  int min_nodes = 1;                            // of the hello
  std::vector<std::string> addresses = {"n1"};  // of the hello
  std::vector<std::string> own;
  std::optional<StartRound> start_round;
  std::optional<Refusal> refusal;
  std::unique_ptr<CoordinatorHost> host;
  std::unique_ptr<ControlLink> link;
};

TEST_F(CoordinatorHostTest, TheAllowlistHasTheMembersAddresses) {
  own = {"10.0.0.1", "127.0.0.1"};
  ASSERT_TRUE(Eventually([&] { return start_round.has_value(); }));
  EXPECT_THAT(start_round->store_allowlist, ElementsAre("10.0.0.1", "127.0.0.1"));
}

TEST_F(CoordinatorHostTest, OfAMemberBehindNatTheConnectionsAddressIsAdmitted) {
  own = {"10.0.0.1", "172.17.0.2"};
  ASSERT_TRUE(Eventually([&] { return start_round.has_value(); }));
  EXPECT_THAT(start_round->store_allowlist, ElementsAre("127.0.0.1"));
  EXPECT_TRUE(HasLogged("the node at 127.0.0.1 has other addresses"));
}

// Other nodes would look for the store at it.
TEST_F(CoordinatorHostTest, AHelloWithoutAnAddressIsRefused) {
  addresses.clear();
  ASSERT_TRUE(Eventually([&] { return refusal.has_value(); }));
  EXPECT_TRUE(HasLogged("a hello without an address"));
  EXPECT_THAT(refusals, ElementsAre("n1: this node's rankrun has another version"));
  EXPECT_FALSE(start_round);
}

TEST_F(CoordinatorHostTest, ANodeThatIsRefusedAgainAndAgainIsOneEvent) {
  min_nodes = 3;
  for (int i = 0; i < 3; ++i) {
    refusal.reset();
    ASSERT_TRUE(Eventually([&] { return refusal.has_value(); }));
    link = Connect();
  }
  EXPECT_THAT(refusals, ElementsAre("n1: " + refusal->text));
}

TEST_F(CoordinatorHostTest, WithoutASecretAnotherUserOfTheHostIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  if (!test::KernelTellsUsers()) GTEST_SKIP() << "the kernel does not tell";
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(seteuid(kNobody), 0);
  Fd stranger = test::ConnectTo(test::Loopback(host->port()));
  ASSERT_EQ(seteuid(0), 0);
  WriteAll(stranger.get(), ClientHandshake::FirstBytes());
  char byte;
  ssize_t count = -1;
  EXPECT_TRUE(Eventually([&] {
    count = recv(stranger.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return count >= 0 || errno == ECONNRESET;
  }));
  EXPECT_LE(count, 0) << "it got a challenge";
  EXPECT_TRUE(HasLogged("it belongs to user 65534 of this host"));
}

struct StrictCoordinatorHostTest : CoordinatorHostTest {
  StrictCoordinatorHostTest() : CoordinatorHostTest(true) {}
};

TEST_F(StrictCoordinatorHostTest, AMemberBehindNatIsRefused) {
  own = {"10.0.0.1", "172.17.0.2"};
  ASSERT_TRUE(Eventually([&] { return refusal.has_value(); }));
  EXPECT_THAT(refusal->text, HasSubstr("and --store-strict refuses such nodes"));
  EXPECT_THAT(refusals, ElementsAre("n1: " + refusal->text));
  EXPECT_FALSE(start_round);
}

}  // namespace
}  // namespace rankrun::agent

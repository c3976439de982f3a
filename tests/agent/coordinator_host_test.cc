#include "agent/coordinator_host.h"

#include <gmock/gmock.h>

#include "agent/control_codec.h"
#include "tests/agent/control_fixture.h"

namespace rankrun::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A coordinator and its one member, on this host.
struct CoordinatorHostTest : ControlTest {
  CoordinatorHostTest() {
    spec.nodes.emplace();
    spec.run_id = "job";
    host = std::make_unique<CoordinatorHost>(
        loop, spec, 1, std::nullopt,
        CoordinatorHost::Callbacks{.keep = [](const CoordinatorRecord&) {}, .on_retired = {}});
    EXPECT_TRUE(host->Listen(0));
    LinkOptions options{.endpoints = {{"127.0.0.1", host->port()}},
                        .job_id = "job",
                        .secret = "",
                        .make_hello = [] { return Encode(MemberMessage(TheHello())); }};
    link = std::make_unique<ControlLink>(
        loop, std::move(options),
        ControlLink::Callbacks{.on_up = {[] {}},
                               .on_message = [this](const std::string& bytes) { Hear(bytes); },
                               .on_down = [](const Error&) {},
                               .on_failed = {}});
  }

  static Hello TheHello() { return {.node = 1, .name = "n1", .addresses = {"n1"}}; }

  void Hear(const std::string& bytes) {
    auto message = DecodeCoordinatorMessage(bytes);
    ASSERT_TRUE(message) << message.error().message;
    if (const auto* prepare = std::get_if<Prepare>(&*message)) {
      link->Send(Encode(MemberMessage(Prepared{prepare->round, 5, own})));
    }
    if (const auto* said = std::get_if<Go>(&*message)) go = *said;
  }

  JobSpec spec;
  std::vector<std::string> own;
  std::optional<Go> go;
  std::unique_ptr<CoordinatorHost> host;
  std::unique_ptr<ControlLink> link;
};

TEST_F(CoordinatorHostTest, TheStoreIsForTheMembersAddresses) {
  own = {"10.0.0.1", "127.0.0.1"};
  ASSERT_TRUE(Eventually([&] { return go.has_value(); }));
  EXPECT_THAT(go->store_clients, ElementsAre("10.0.0.1", "127.0.0.1"));
}

TEST_F(CoordinatorHostTest, TheStoreIsForAllIfAMemberComesByAnAddressItDoesNotHave) {
  own = {"10.0.0.1", "172.17.0.2"};
  ASSERT_TRUE(Eventually([&] { return go.has_value(); }));
  EXPECT_THAT(go->store_clients, IsEmpty());
}

}  // namespace
}  // namespace rankrun::agent

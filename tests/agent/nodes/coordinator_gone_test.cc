#include <gmock/gmock.h>

#include "agent/nodes/control_codec.h"
#include "agent/nodes/coordinator_host.h"
#include "base/net/listen_socket.h"
#include "tests/agent/control/control_fixture.h"

// A node whose rankrun is killed.

namespace rankrun::agent {
namespace {

using testing::HasSubstr;

// A member that starts on an order of the test, and has a liveness port.
struct MortalMember {
  MortalMember(Loop& loop, uint16_t port, uint64_t node) {
    socket = *OpenTcpSocket();
    liveness_port = *ListenOnFreePort(socket.get());
    Hello hello{.node = node,
                .name = "n" + std::to_string(node),
                .min_nodes = 1,
                .max_nodes = 2,
                .addresses = {"127.0.0.1"},
                .liveness_port = liveness_port};
    LinkOptions options{
        .endpoints = {{"127.0.0.1", port}}, .job_id = "job", .secret = "", .make_hello = [hello] {
          return Encode(MemberMessage(hello));
        }};
    link = std::make_unique<ControlLink>(
        loop, std::move(options),
        ControlLink::Callbacks{.on_up = [] {},
                               .on_message = [this](const std::string& bytes) { OnMessage(bytes); },
                               .on_down = [](const Error&) {},
                               .on_failed = {}});
  }

  void OnMessage(const std::string& bytes) {
    auto message = DecodeCoordinatorMessage(bytes);
    ASSERT_TRUE(message) << message.error().message;
    if (const auto* prepare = std::get_if<Prepare>(&*message)) {
      link->Send(Encode(MemberMessage(Prepared{prepare->round, 5, {"127.0.0.1"}})));
    }
    if (const auto* start = std::get_if<StartRound>(&*message)) round = start->round;
    if (const auto* order = std::get_if<Stop>(&*message)) stop = order->why;
    if (std::holds_alternative<Refusal>(*message)) link->Close();
    if (const auto* gone = std::get_if<NodeLost>(&*message)) lost = gone->text;
  }
  // Takes the connection that is the trial of the port.
  bool IsTried() {
    is_tried = is_tried || Fd(accept(socket.get(), nullptr, nullptr));
    return is_tried;
  }
  void Die() {
    socket.Reset();
    link.reset();
  }

  Fd socket;
  uint16_t liveness_port = 0;
  std::unique_ptr<ControlLink> link;
  bool is_tried = false;
  int round = 0;
  std::string stop;
  std::string lost;
};

struct CoordinatorGoneTest : ControlTest {
  CoordinatorGoneTest() {
    spec.run_id = "job";
    spec.nodes.emplace();
    spec.nodes->min = 1;
    spec.nodes->max = 2;
    spec.nodes->node_timeout = std::chrono::minutes(10);
    host = std::make_unique<CoordinatorHost>(
        loop, spec, 1, std::nullopt,
        CoordinatorHost::Callbacks{.keep = [](const CoordinatorRecord&) {}, .on_retired = {}});
    EXPECT_TRUE(host->Listen(0));
  }

  JobSpec spec;
  std::unique_ptr<CoordinatorHost> host;
};

TEST_F(CoordinatorGoneTest, ANodeWithoutAnyProcessIsLostLongBeforeTheNodeTimeout) {
  MortalMember first(loop, host->port(), 1);
  MortalMember second(loop, host->port(), 2);
  ASSERT_TRUE(Eventually([&] { return first.round == 1 && second.round == 1; }));
  ASSERT_TRUE(Eventually([&] { return second.IsTried(); }));
  second.Die();
  ASSERT_TRUE(Eventually([&] { return !first.stop.empty(); }));
  std::string port = std::to_string(second.liveness_port);
  EXPECT_EQ(first.stop,
            "node n2 is lost: its rankrun was killed (port " + port + " refuses connections)");
  EXPECT_EQ(first.lost, first.stop);
  EXPECT_FALSE(first.IsTried()) << "the coordinator's own node";
}

TEST_F(CoordinatorGoneTest, ANodeThatTheCoordinatorCannotReadIsLostOnceItHasEnded) {
  MortalMember first(loop, host->port(), 1);
  MortalMember second(loop, host->port(), 2);
  ASSERT_TRUE(Eventually([&] { return second.round == 1 && second.IsTried(); }));
  second.link->Send("nonsense");
  second.socket.Reset();
  ASSERT_TRUE(Eventually([&] { return !first.stop.empty(); }));
  EXPECT_THAT(first.stop, HasSubstr("node n2 is lost"));
}

}  // namespace
}  // namespace rankrun::agent

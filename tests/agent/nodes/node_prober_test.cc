#include "agent/nodes/node_prober.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/net/listen_socket.h"
#include "tests/agent/control/control_fixture.h"

namespace rankrun::agent {
namespace {

struct NodeProberTest : ControlTest {
  NodeProberTest() {
    socket = *OpenTcpSocket();
    port = *ListenOnFreePort(socket.get());
    prober.emplace(
        loop, std::chrono::milliseconds(60'000),
        NodeProber::Callbacks{.is_wanted =
                                  [this](uint64_t node) {
                                    questions[node] += 1;
                                    return wanted.contains(node);
                                  },
                              .on_gone = [this](const NodeGone& node) { gone.push_back(node); }});
  }
  // Waits for one more connection to the port.
  bool IsTried() {
    bool is_tried = false;
    return Eventually([&] {
      is_tried = is_tried || Fd(accept(socket.get(), nullptr, nullptr));
      return is_tried;
    });
  }

  Fd socket;  // of the node
  uint16_t port = 0;
  std::set<uint64_t> wanted = {2};
  std::map<uint64_t, int> questions;  // whether a node is wanted
  std::vector<NodeGone> gone;
  std::optional<NodeProber> prober;
};

TEST_F(NodeProberTest, ANodeWhosePortRefusesAfterABreakIsGone) {
  prober->OnHello(2, {"127.0.0.1", port});
  ASSERT_TRUE(IsTried());
  socket.Reset();
  prober->OnBroken(2);
  ASSERT_TRUE(Eventually([&] { return !gone.empty(); }));
  EXPECT_EQ(gone[0].node, 2U);
  EXPECT_EQ(gone[0].port, port);
}

TEST_F(NodeProberTest, ANodeIsDialledAgainUntilItsPortRefuses) {
  prober->OnHello(2, {"127.0.0.1", port});
  ASSERT_TRUE(IsTried());
  prober->OnBroken(2);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(IsTried());
  EXPECT_TRUE(gone.empty());
  socket.Reset();
  EXPECT_TRUE(Eventually([&] { return gone.size() == 1; }));
}

TEST_F(NodeProberTest, ANodeThatNobodyWantsIsForgotten) {
  prober->OnHello(2, {"127.0.0.1", port});
  ASSERT_TRUE(IsTried());
  wanted = {3};
  prober->OnBroken(2);
  const int before = questions[2];
  ASSERT_TRUE(Eventually([&] { return questions[2] > before; }));
  wanted = {2, 3};
  prober->OnHello(3, {"127.0.0.1", port});
  ASSERT_TRUE(IsTried());
  prober->OnBroken(3);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(IsTried());  // node 2 would be dialled in these pauses
  socket.Reset();
  ASSERT_TRUE(Eventually([&] { return !gone.empty(); }));
  EXPECT_EQ(gone[0].node, 3U);
  EXPECT_EQ(questions[2], before + 1);
}

}  // namespace
}  // namespace rankrun::agent

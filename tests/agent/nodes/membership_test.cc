#include "agent/nodes/membership.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "agent/nodes/control_codec.h"
#include "agent/nodes/job_report.h"
#include "tests/agent/control/control_fixture.h"
#include "tests/base/net/peer_user_probe.h"

// A member and a coordinator that it should not trust.

namespace rankrun::agent {
namespace {

using testing::HasSubstr;

struct MembershipTest : ControlTest {
  MembershipTest() {
    auto pair = GuardianLink::CreatePair();
    auto memory = JobMemory::Create();
    EXPECT_TRUE(pair && memory);
    guardian.emplace(std::move(pair->first));
    incarnation.emplace(std::move(pair->second), std::move(*memory));
    spec.run_id = "job";
    spec.nodes.emplace();
    spec.nodes->min = spec.nodes->max = 2;
    spec.nodes->is_host = false;
    spec.nodes->node_name = "n2";
  }

  void Join(uint16_t port) {
    spec.nodes->endpoints = {{"127.0.0.1", port}};
    Membership::Callbacks callbacks{.open_store = [] { return Result<uint16_t>(uint16_t{5}); },
                                    .admit_only = [](const std::vector<std::string>&) {},
                                    .start = [this](const NodePlace&) { starts += 1; },
                                    .stop = [](const StopWorkers&) {},
                                    .report_success = [] {},
                                    .say = [this](const std::string& text) { said += text; },
                                    .on_node_lost = [](const std::string&) {},
                                    .show_report = [this](const AttemptRecord&) { shown += 1; },
                                    .on_health_order = [](const HealthOrder&) {},
                                    .on_end = [](int, const std::string&) {}};
    membership = std::make_unique<Membership>(loop, spec, *incarnation, std::move(callbacks));
    EXPECT_TRUE(membership->Open());
    membership->Begin();
  }

  JobSpec spec;
  std::optional<GuardianLink> guardian;
  std::optional<Incarnation> incarnation;
  std::unique_ptr<Membership> membership;
  int starts = 0;
  int shown = 0;
  std::string said;
};

// Returns the last message of type T in `bytes`.
template <typename T>
std::optional<T> LastOf(const std::vector<std::string>& bytes) {
  std::optional<T> last;
  for (const std::string& one : bytes) {
    auto message = DecodeMemberMessage(one);
    if (message && std::holds_alternative<T>(*message)) last = std::get<T>(*message);
  }
  return last;
}

TEST_F(MembershipTest, AStartWithoutAnAddressOfTheStoreIsAFailure) {
  NotingServer coordinator(loop);
  ASSERT_TRUE(coordinator.Listen());
  Join(coordinator->port());
  ASSERT_TRUE(Eventually([&] { return coordinator.hellos.size() == 1; }));
  PeerId member = coordinator.hellos[0].first;
  auto send = [&](const CoordinatorMessage& message) {
    coordinator->Send(member, Encode(message));
  };
  send(Waiting{""});
  send(Prepare{.round = 1, .node_rank = 0, .node_count = 2, .world_size = 2});
  ASSERT_TRUE(Eventually([&] { return LastOf<Prepared>(coordinator.messages).has_value(); }));
  send(StartRound{.round = 1, .store_addresses = {}, .store_port = 5});
  ASSERT_TRUE(Eventually([&] { return LastOf<Failed>(coordinator.messages).has_value(); }));
  EXPECT_EQ(LastOf<Failed>(coordinator.messages)->cause.text,
            "node n2: the coordinator sent no address of the store");
  EXPECT_EQ(starts, 0);
}

// A link takes bytes for some time after its coordinator has died.
TEST_F(MembershipTest, AReportIsRepeatedOnEachLinkUntilTheMergedOneArrives) {
  NotingServer coordinator(loop);
  ASSERT_TRUE(coordinator.Listen());
  Join(coordinator->port());
  auto await_link = [&](size_t number) {
    return Eventually([&] {
      if (coordinator.hellos.size() < number) return false;
      coordinator->Send(coordinator.hellos.back().first, Encode(CoordinatorMessage(Waiting{""})));
      return true;
    });
  };
  auto await_report = [&] {
    return Eventually([&] { return LastOf<Report>(coordinator.messages).has_value(); });
  };
  auto close_link = [&] {
    coordinator.messages.clear();
    coordinator->Close(coordinator.hellos.back().first);
  };
  ASSERT_TRUE(await_link(1));
  AttemptRecord record;
  record.attempt = 3;
  record.workers.emplace_back();
  record.workers[0].exit = ProcessExit{.signaled = false, .value = 7};
  membership->AnnounceReport(3);
  membership->SendReport(record);
  EXPECT_TRUE(await_report());
  close_link();
  ASSERT_TRUE(await_link(2));
  EXPECT_TRUE(await_report());
  coordinator->Send(coordinator.hellos[1].first,
                    Encode(CoordinatorMessage(JobReport{3, EncodeReport(record, kMaxPartBytes)})));
  ASSERT_TRUE(Eventually([&] { return shown == 1; }));
  close_link();
  ASSERT_TRUE(await_link(3));
  record.attempt = 4;
  membership->SendReport(record);  // a repetition would come before it
  ASSERT_TRUE(await_report());
  for (const std::string& bytes : coordinator.messages) {
    auto message = DecodeMemberMessage(bytes);
    const auto* report = message ? std::get_if<Report>(&*message) : nullptr;
    EXPECT_TRUE(report == nullptr || report->attempt == 4);
  }
}

TEST_F(MembershipTest, WithoutASecretACoordinatorOfAnotherUserIsNotTrusted) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  if (!test::KernelTellsUsers()) GTEST_SKIP() << "the kernel does not tell";
  constexpr uid_t kNobody = 65534;
  Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress any = test::Loopback();
  ASSERT_EQ(bind(listener.get(), any.raw(), any.raw_size()), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  pid_t stranger = test::Fork([&] {
    if (setresuid(kNobody, kNobody, kNobody) != 0) return 1;
    Fd node(accept(listener.get(), nullptr, nullptr));
    const JobSecret none("");
    WriteAll(node.get(), EncodeFrame(ServerHandshake(none, "job").Challenge()));
    pause();
    return 0;
  });
  Join(SocketAddress::LocalOf(listener.get())->port());
  EXPECT_TRUE(Eventually([&] { return !said.empty(); }));
  EXPECT_THAT(said, HasSubstr("belongs to user 65534 of this host, which a job without a secret "
                              "does not trust"));
  kill(stranger, SIGKILL);
  test::WaitForExit(stranger);
}

}  // namespace
}  // namespace rankrun::agent

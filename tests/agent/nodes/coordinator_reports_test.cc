#include <gmock/gmock.h>

#include "agent/nodes/control_codec.h"
#include "agent/nodes/coordinator_host.h"
#include "agent/nodes/job_report.h"
#include "tests/agent/control/control_fixture.h"

// Parts of a report that a member sends against the rules.

namespace rankrun::agent {
namespace {

WorkerRecord FailedWorker(int rank) {
  WorkerRecord worker;
  worker.global_rank = rank;
  worker.exit = ProcessExit{.signaled = false, .value = 7};
  return worker;
}

AttemptRecord RecordOf(int workers, int first_rank = 0) {
  AttemptRecord record;
  for (int i = 0; i < workers; ++i) record.workers.push_back(FailedWorker(first_rank + i));
  return record;
}

std::vector<int> RanksOf(const AttemptRecord& record) {
  std::vector<int> ranks;
  for (const WorkerRecord& worker : record.workers) ranks.push_back(worker.global_rank);
  return ranks;
}

std::string ReportOf(const AttemptRecord& record, int attempt = 1) {
  return Encode(MemberMessage(Report{attempt, EncodeReport(record, kMaxReportBytes)}));
}

// A member that prepares and stops as it is asked to, unless it is stubborn.
class ObedientMember {
 public:
  ObedientMember(Loop& loop, uint16_t port, uint64_t node, int attempts = 0)
      : link_(loop,
              LinkOptions{.endpoints = {{"127.0.0.1", port}},
                          .job_id = "job",
                          .secret = "",
                          .make_hello =
                              [node, attempts] {
                                return Encode(MemberMessage(Hello{.node = node,
                                                                  .name = "n",
                                                                  .min_nodes = 2,
                                                                  .max_nodes = 2,
                                                                  .addresses = {"127.0.0.1"},
                                                                  .attempts = attempts}));
                              }},
              {.on_up = [this] { is_up = true; },
               .on_message = [this](const std::string& bytes) { OnMessage(bytes); },
               .on_down = [](const Error&) {},
               .on_failed = {}}) {}

  void Send(const MemberMessage& message) { link_.Send(Encode(message)); }
  void SendBytes(const std::string& bytes) { link_.Send(bytes); }

  bool is_stubborn = false;
  bool is_up = false;
  int rounds = 0;
  bool was_stopped = false;
  std::vector<AttemptRecord> reports;

 private:
  void OnMessage(const std::string& bytes) {
    auto message = DecodeCoordinatorMessage(bytes);
    ASSERT_TRUE(message) << message.error().message;
    if (const auto* prepare = std::get_if<Prepare>(&*message)) {
      Send(Prepared{prepare->round, 5, {"127.0.0.1"}});
    }
    if (std::holds_alternative<StartRound>(*message)) rounds += 1;
    if (const auto* stop = std::get_if<Stop>(&*message)) {
      if (!is_stubborn) Send(Stopped{stop->round});
      was_stopped = true;
    }
    if (const auto* report = std::get_if<JobReport>(&*message)) {
      auto record = DecodeReport(report->record);
      ASSERT_TRUE(record) << record.error().message;
      reports.push_back(std::move(*record));
    }
  }

  ControlLink link_;
};

// A running round of two nodes.
struct CoordinatorReportsTest : ControlTest {
  explicit CoordinatorReportsTest(int max_restarts = 0) {
    spec.max_restarts = max_restarts;
    spec.nodes.emplace();
    spec.nodes->min = spec.nodes->max = 2;
    spec.run_id = "job";
    host = std::make_unique<CoordinatorHost>(
        loop, spec, 1, std::nullopt,
        CoordinatorHost::Callbacks{.keep = [](const CoordinatorRecord&) {}, .on_retired = [] {}});
    EXPECT_TRUE(host->Listen(0));
    for (uint64_t node : {1u, 2u}) {
      members.push_back(std::make_unique<ObedientMember>(loop, host->port(), node));
    }
    EXPECT_TRUE(Runs(1));
  }

  bool Runs(int round) {
    return Eventually([&] { return members[0]->rounds == round && members[1]->rounds == round; });
  }

  // Returns after the time in which the parts of a report must arrive.
  bool WaitForLateParts() {
    bool is_over = false;
    Timer patience(loop, [&] { is_over = true; });
    patience.Start(std::chrono::milliseconds(1'200));
    return Eventually([&] { return is_over; });
  }

  // The first member fails and sends `reports`, the second one that of `rank`.
  // Returns the merged report.
  AttemptRecord Merge(const std::vector<std::string>& reports, int rank) {
    members[0]->Send(Failed{1, Cause{.text = "rank 0 failed", .rank = 0}});
    members[0]->Send(Stopped{1});
    for (const std::string& report : reports) members[0]->SendBytes(report);
    EXPECT_TRUE(Eventually([&] { return members[1]->was_stopped; }));
    members[1]->SendBytes(ReportOf(RecordOf(1, rank)));
    EXPECT_TRUE(Eventually([&] { return !members[1]->reports.empty(); }));
    return members[1]->reports.empty() ? AttemptRecord{} : members[1]->reports[0];
  }

  // Replaces the first member's link.
  void Reconnect(int attempts = 0) {
    members[0] = std::make_unique<ObedientMember>(loop, host->port(), 1, attempts);
    EXPECT_TRUE(Eventually([&] { return members[0]->is_up; }));
  }

  JobSpec spec;
  std::unique_ptr<CoordinatorHost> host;
  std::vector<std::unique_ptr<ObedientMember>> members;
};

TEST_F(CoordinatorReportsTest, OfEachNodeOnePartCounts) {
  const std::string part = ReportOf(RecordOf(1));
  EXPECT_EQ(Merge({part, part, part}, 1).workers.size(), 2u);
}

TEST_F(CoordinatorReportsTest, APartThatIsRepeatedOnAnotherLinkCountsOnce) {
  const std::string part = ReportOf(RecordOf(1));
  members[0]->Send(Failed{1, Cause{.text = "rank 0 failed", .rank = 0}});
  members[0]->Send(Stopped{1});
  members[0]->SendBytes(part);
  ASSERT_TRUE(Eventually([&] { return members[1]->was_stopped; }));
  Reconnect();
  members[0]->SendBytes(part);
  members[1]->SendBytes(ReportOf(RecordOf(1, 1)));
  ASSERT_TRUE(Eventually([&] { return !members[1]->reports.empty(); }));
  EXPECT_EQ(RanksOf(members[1]->reports[0]), (std::vector<int>{0, 1}));
}

TEST_F(CoordinatorReportsTest, APartThatIsRepeatedAfterTheMergeIsAnsweredToItsSenderOnly) {
  const std::string part = ReportOf(RecordOf(1));
  Merge({part}, 1);
  Reconnect();
  members[0]->SendBytes(part);
  ASSERT_TRUE(Eventually([&] { return !members[0]->reports.empty(); }));
  EXPECT_EQ(members[0]->reports[0].workers.size(), 2u);
  EXPECT_EQ(members[1]->reports.size(), 1u);
}

// It has succeeded, so that it has no part to repeat.
TEST_F(CoordinatorReportsTest, ANodeThatLostItsLinkBeforeTheReportGetsItOnTheNext) {
  Merge({ReportOf(RecordOf(1))}, 1);
  Reconnect(2);
  ASSERT_TRUE(Eventually([&] { return !members[0]->reports.empty(); }));
  EXPECT_EQ(members[0]->reports[0].workers.size(), 2u);
}

TEST_F(CoordinatorReportsTest, APartOfAnEarlierAttemptTakesNobodysPlace) {
  const std::string part = ReportOf(RecordOf(1));
  members[1]->Send(Failed{1, Cause{.text = "rank 1 failed", .rank = 1}});
  members[1]->Send(Stopped{1});
  members[1]->SendBytes(ReportOf(RecordOf(1, 1)));
  ASSERT_TRUE(Eventually([&] { return members[0]->was_stopped; }));
  members[0]->SendBytes(ReportOf(RecordOf(1, 5), 0));
  members[0]->SendBytes(part);
  ASSERT_TRUE(Eventually([&] { return !members[1]->reports.empty(); }));
  EXPECT_EQ(RanksOf(members[1]->reports[0]), (std::vector<int>{0, 1}));
}

// Workers may take until --shutdown-timeout to end.
TEST_F(CoordinatorReportsTest, ANodeThatStopsLateIsWaitedFor) {
  members[1]->is_stubborn = true;
  members[0]->Send(Failed{1, Cause{.text = "rank 0 failed", .rank = 0}});
  members[0]->Send(Stopped{1});
  members[0]->SendBytes(ReportOf(RecordOf(1)));
  ASSERT_TRUE(Eventually([&] { return members[1]->was_stopped; }));
  ASSERT_TRUE(WaitForLateParts());
  EXPECT_TRUE(members[0]->reports.empty());
  members[1]->SendBytes(ReportOf(RecordOf(1, 1)));
  members[1]->Send(Stopped{1});
  ASSERT_TRUE(Eventually([&] { return !members[0]->reports.empty(); }));
  EXPECT_EQ(RanksOf(members[0]->reports[0]), (std::vector<int>{0, 1}));
}

struct ReportsOfTwoAttemptsTest : CoordinatorReportsTest {
  ReportsOfTwoAttemptsTest() : CoordinatorReportsTest(1) {}
};

TEST_F(ReportsOfTwoAttemptsTest, TheTimeForTheFirstDoesNotEndTheSecond) {
  EXPECT_EQ(Merge({ReportOf(RecordOf(1))}, 1).workers.size(), 2u);
  ASSERT_TRUE(Runs(2));
  members[1]->is_stubborn = true;
  members[1]->was_stopped = false;
  members[0]->Send(Failed{2, Cause{.text = "rank 0 failed", .rank = 0}});
  members[0]->Send(Stopped{2});
  members[0]->SendBytes(ReportOf(RecordOf(1), 2));
  ASSERT_TRUE(Eventually([&] { return members[1]->was_stopped; }));
  ASSERT_TRUE(WaitForLateParts());
  members[1]->Send(Stopped{2});
  members[1]->SendBytes(ReportOf(RecordOf(1, 1), 2));
  ASSERT_TRUE(Eventually([&] { return members[0]->reports.size() == 2; }));
  EXPECT_EQ(RanksOf(members[0]->reports[1]), (std::vector<int>{0, 1}));
}

TEST_F(CoordinatorReportsTest, APartThatIsTooLargeIsLeftOut) {
  const std::string large =
      Encode(MemberMessage(Report{1, EncodeReport(RecordOf(500), 4 * kMaxPartBytes)}));
  ASSERT_GT(large.size(), kMaxPartBytes);
  EXPECT_EQ(Merge({large}, 500).workers.size(), 1u);
  EXPECT_TRUE(HasLogged("bytes, over the limit of 65536"));
}

}  // namespace
}  // namespace rankrun::agent

#include "agent/report/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/uv/uv_loop.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

struct EventLogTest : testing::Test {
  EventLogTest() {
    spec.workers = 2;
    spec.run_id = "job-7";
    spec.version = "1.0";
    spec.events_file = folder.Path("events");
  }

  void Open() {
    auto opened = EventLog::Open(
        loop, spec,
        {.show = [this](std::string_view text) { shown += text; }, .on_progress = [] {}});
    ASSERT_TRUE(opened) << opened.error().message;
    log = std::move(*opened);
  }
  std::vector<json> Events() {
    EXPECT_TRUE(loop.RunUntil([this] { return log->written(); }, test::kLong));
    std::istringstream text(test::ReadWholeFile(spec.events_file));
    std::vector<json> events;
    for (std::string line; std::getline(text, line);) events.push_back(json::parse(line));
    return events;
  }
  std::vector<std::string> Kinds() {
    std::vector<std::string> kinds;
    for (const json& event : Events()) kinds.push_back(event["event"]);
    return kinds;
  }
  static WorkerRecord Exited(int rank, int code) {
    WorkerRecord worker;
    worker.global_rank = worker.local_rank = rank;
    worker.pid = 100 + rank;
    worker.exit = ProcessExit{.signaled = false, .value = code};
    return worker;
  }
  static AttemptRecord Failed() {
    AttemptRecord record;
    record.attempt = 1;
    record.max_restarts = 3;
    record.workers = {Exited(0, 1), Exited(1, 9)};
    record.cause = 1;
    return record;
  }
  static GroupState In(Phase phase) {
    GroupState state;
    state.phase = phase;
    return state;
  }

  test::TempFolder folder;
  Loop loop;
  JobSpec spec;
  std::string shown;
  std::unique_ptr<EventLog> log;
};

TEST_F(EventLogTest, AJobHasEventsFromItsStartToItsEnd) {
  Open();
  log->JobStarted(10, {});
  log->AttemptStarted(0, 29500);
  log->WorkerStarted(Exited(0, 0));
  log->WorkerEnded(Exited(0, 0));
  log->JobEnded({.exit_code = 0, .end_signal = 0});
  log->JobEnded({.exit_code = 0, .end_signal = 0});
  log->AttemptStarted(1, 29500);
  EXPECT_THAT(Kinds(), ElementsAre("job_started", "attempt_started", "worker_started",
                                   "worker_ended", "job_ended"));
  EXPECT_EQ(Events()[3]["attempt"], 0);
  EXPECT_GE(Events()[3]["seconds"], 0.0);
  EXPECT_EQ(Events()[4]["why"], "all workers succeeded");
}

TEST_F(EventLogTest, NothingIsWrittenWithoutAnOutput) {
  spec.events_file.clear();
  Open();
  log->JobStarted(10, {});
  log->JobEnded({.exit_code = 0, .end_signal = 0});
  EXPECT_TRUE(log->written());
  EXPECT_EQ(shown, "");
}

TEST_F(EventLogTest, TheConsoleGetsTheSameLines) {
  spec.events_console = true;
  Open();
  log->JobStarted(10, {});
  log->Report(Failed(), "text");
  Events();
  EXPECT_EQ(shown, test::ReadWholeFile(spec.events_file));
}

TEST_F(EventLogTest, AStopAfterAFailureNamesTheRank) {
  Open();
  log->WorkerEnded(Exited(0, 0));
  log->WorkerEnded(Exited(1, 3));
  log->WorkerEnded(Exited(0, 4));
  log->Stepped(In(Phase::kRunning), In(Phase::kStopping));
  EXPECT_EQ(Events().back()["event"], "stop_begun");
  EXPECT_EQ(Events().back()["why"], "rank 1 failed: exit code 3");
}

TEST_F(EventLogTest, AStopOnRequestNamesTheSignal) {
  Open();
  GroupState stopping = In(Phase::kStopping);
  stopping.stop_signal = SIGINT;
  log->Stepped(In(Phase::kRunning), stopping);
  log->Stepped(In(Phase::kStopping), stopping);
  log->Stepped(stopping, stopping);
  EXPECT_THAT(Kinds(), ElementsAre("stop_begun", "stop_begun"));
  EXPECT_EQ(Events()[0]["why"], "stopped by SIGINT");
}

TEST_F(EventLogTest, AKillHasItsReason) {
  spec.shutdown_timeout = milliseconds(1500);
  Open();
  GroupState asked = In(Phase::kStopping);
  asked.stop_signal = SIGTERM;
  GroupState killed = asked;
  killed.kill_now = true;
  log->Stepped(asked, killed);
  log->Stepped(killed, killed);
  killed.deadline += milliseconds(1);
  log->Stepped(asked, killed);
  EXPECT_THAT(Kinds(), ElementsAre("kill", "kill"));
  EXPECT_EQ(Events()[0]["why"], "asked to stop a second time");
  EXPECT_EQ(Events()[1]["why"], "the shutdown timeout of 1.5 s has passed");
}

TEST_F(EventLogTest, ASignalThatEndsAllAtOnceIsNoSecondRequest) {
  Open();
  GroupState killed = In(Phase::kStopping);
  killed.stop_signal = SIGALRM;
  killed.kill_now = killed.hurried = true;
  killed.deadline += milliseconds(1);
  log->Stepped(In(Phase::kRunning), killed);
  EXPECT_THAT(Kinds(), ElementsAre("stop_begun", "kill"));
  EXPECT_EQ(Events()[0]["why"], "stopped by SIGALRM");
  EXPECT_EQ(Events()[1]["why"], "SIGALRM is not one of --signals-to-handle");
}

TEST_F(EventLogTest, TheEndOfTheJobsTimeIsAReason) {
  spec.time_limit = milliseconds(5000);
  Open();
  GroupState stopping = In(Phase::kStopping);
  stopping.timed_out = true;
  log->Stepped(In(Phase::kRunning), stopping);
  log->Stepped(stopping, stopping);
  GroupState over = stopping;
  over.phase = Phase::kTimedOut;
  log->Stepped(stopping, over);
  log->JobEnded({.exit_code = 124, .end_signal = 0});
  EXPECT_THAT(Kinds(), ElementsAre("stop_begun", "job_ended"));
  for (int i : {0, 1}) {
    EXPECT_EQ(Events()[static_cast<size_t>(i)]["why"], "the job's time (--timeout 5.0 s) is over");
  }
}

TEST_F(EventLogTest, ATimeLimitReachedWhileWorkersAreStoppedIsAnEventToo) {
  spec.time_limit = milliseconds(5000);
  Open();
  log->WorkerEnded(Exited(1, 3));
  log->Stepped(In(Phase::kRunning), In(Phase::kStopping));
  GroupState timed_out = In(Phase::kStopping);
  timed_out.timed_out = true;
  log->Stepped(In(Phase::kStopping), timed_out);
  EXPECT_THAT(Kinds(), ElementsAre("worker_ended", "stop_begun", "stop_begun"));
  EXPECT_EQ(Events()[1]["why"], "rank 1 failed: exit code 3");
  EXPECT_EQ(Events()[2]["why"], "the job's time (--timeout 5.0 s) is over");
}

TEST_F(EventLogTest, AWorkerThatHangsInTheKernelIsNamed) {
  Open();
  GroupState stopping = In(Phase::kStopping);
  stopping.stuck = 1;
  log->Stepped(In(Phase::kRunning), stopping);
  log->Report(Failed(), "text");
  GroupState over = stopping;
  over.phase = Phase::kFailed;
  log->Stepped(stopping, over);
  log->JobEnded({.exit_code = 203, .end_signal = 0});
  EXPECT_EQ(Events().front()["why"], "rank 1 hangs in the kernel");
  EXPECT_EQ(Events().back()["why"], "rank 1 hangs in the kernel");
}

TEST_F(EventLogTest, OtherStepsAreNoEvents) {
  Open();
  log->Stepped(In(Phase::kSweeping), In(Phase::kRunning));
  log->Stepped(In(Phase::kStopping), In(Phase::kSweeping));
  log->Stepped(In(Phase::kSweeping), In(Phase::kFailed));
  log->LeftBehind({}, SIGTERM);
  EXPECT_THAT(Kinds(), ElementsAre());
}

TEST_F(EventLogTest, ARestartNamesTheAttemptThatFailed) {
  Open();
  log->Restart(Failed(), milliseconds(500));
  json event = Events()[0];
  EXPECT_EQ(event["attempt"], 1);
  EXPECT_EQ(event["number"], 2);
  EXPECT_EQ(event["of"], 3);
  EXPECT_EQ(event["delay"], 0.5);
  EXPECT_EQ(event["why"], "rank 1 failed: exit code 9");
}

TEST_F(EventLogTest, TheEndOfAFailedJobNamesTheCause) {
  Open();
  log->WorkerEnded(Exited(0, 1));
  log->Report(Failed(), "text");
  log->JobEnded({.exit_code = 9, .end_signal = 0});
  EXPECT_EQ(Events().back()["why"], "rank 1 failed: exit code 9");
  EXPECT_EQ(Events().back()["exit_code"], 9);
}

TEST_F(EventLogTest, TheEndByASignalHasNoExitCode) {
  Open();
  log->JobEnded({.exit_code = 0, .end_signal = SIGTERM});
  EXPECT_EQ(Events()[0]["why"], "stopped by SIGTERM");
  EXPECT_FALSE(Events()[0].contains("exit_code"));
}

TEST_F(EventLogTest, AFullDiskIsReportedAndBlocksNothing) {
  spec.events_file = "/dev/full";
  Open();
  log->JobStarted(10, {});
  log->JobEnded({.exit_code = 0, .end_signal = 0});
  EXPECT_TRUE(loop.RunUntil([this] { return log->written(); }, test::kLong));
  EXPECT_EQ(shown, "rankrun: --events /dev/full: lines are lost: No space left on device\n");
}

// The pipe is full and its reader does not read.
TEST_F(EventLogTest, TheEndWaitsOneSecondAtMost) {
  spec.events_file = folder.Path("pipe");
  ASSERT_EQ(mkfifo(spec.events_file.c_str(), 0600), 0);
  Open();
  AttemptRecord record = Failed();
  log->Report(record, std::string(200'000, 'x'));
  EXPECT_FALSE(log->written());
  TimePoint begin = std::chrono::steady_clock::now();
  log->JobEnded({.exit_code = 0, .end_signal = 0});
  EXPECT_TRUE(loop.RunUntil([this] { return log->written(); }, test::kLong));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  // Unblock the pool's thread.
  Fd reader(open(spec.events_file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string text(1024 * 1024, '\0');
  loop.RunUntil([&] { return read(reader.get(), text.data(), text.size()) < 0; }, test::kLong);
  log.reset();
}

TEST_F(EventLogTest, AFileThatCannotBeOpenedIsAnError) {
  spec.events_file = "/no/such/file";
  auto opened = EventLog::Open(loop, spec, {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(opened.error().message, HasSubstr("--events /no/such/file: No such file"));
}

TEST_F(EventLogTest, ARefusalIsTheOnlyLine) {
  WriteRefusal(spec, {ErrorCode::kNotFound, "train: no such file"}, 127);
  json event = json::parse(test::ReadWholeFile(spec.events_file));
  EXPECT_EQ(event["event"], "refused");
  EXPECT_EQ(event["why"], "train: no such file");
  EXPECT_EQ(event["exit_code"], 127);
}

TEST_F(EventLogTest, RankctlGetsANoteInsteadOfAnEventThatIsTooLong) {
  Open();
  log->NodeLost("short");
  log->NodeLost(std::string(600 << 10, 'x'));
  auto lines = log->ring().After(0, 1 << 20).lines;
  ASSERT_EQ(lines.size(), 2u);
  json note = json::parse(lines[1]);
  EXPECT_EQ(note["event"], "events_lost");
  EXPECT_EQ(note["count"], 1);
  EXPECT_EQ(note["run_id"], "job-7");
  EXPECT_THAT(Kinds(), ElementsAre("node_lost", "node_lost")) << "the file has it";
}

}  // namespace
}  // namespace rankrun::agent

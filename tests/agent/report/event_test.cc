#include "agent/report/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/paths.h"

namespace rankrun::agent::events {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::HasSubstr;

WorkerRecord Worker(int rank, ProcessExit exit) {
  WorkerRecord worker;
  worker.global_rank = worker.local_rank = rank;
  worker.pid = 100 + rank;
  worker.exit = exit;
  return worker;
}

WorkerRecord Exited(int rank, int code) { return Worker(rank, {.signaled = false, .value = code}); }
WorkerRecord Killed(int rank, int number) {
  return Worker(rank, {.signaled = true, .value = number});
}

std::string Line(Payload payload, std::optional<int> attempt = 0) {
  return FormatEvent(
      {.time = {}, .run_id = "job-7", .attempt = attempt, .payload = std::move(payload)});
}

// Returns the fields of the payload alone.
json Fields(Payload payload) {
  json object = json::parse(Line(std::move(payload)));
  for (const char* name : {"time", "event", "run_id", "attempt"}) object.erase(name);
  return object;
}

Report SomeReport() {
  Report report;
  report.text = "rankrun: attempt 0 failed\n";
  report.record.lasted = milliseconds(2500);
  report.record.workers = {Killed(0, SIGTERM), Exited(1, 3)};
  report.record.workers[0].sent_signal = SIGTERM;
  report.record.workers[1].exception = "ValueError: no";
  report.record.workers[1].stderr_tail = "one\ntwo\n";
  report.record.workers[1].stderr_file = "/tmp/e/1.stderr";
  report.record.cause = 1;
  report.record.left_out = {{.kind = EndKind::kStopped,
                             .exit = ProcessExit{.signaled = true, .value = SIGTERM},
                             .bounds = {2, 9},
                             .count = 8}};
  return report;
}

// Returns payloads of every kind with all fields set.
std::vector<Payload> OneOfEach() {
  WorkerRecord unstarted;
  unstarted.start_error = Error{ErrorCode::kNotFound, "start /x: no such file"};
  return {JobStarted{"1.0", "n1", 10, 11, 4, 3, {"train", "--x"}},
          AgentRestarted{12, 1, RestartsUsed{1, 3, 0}, "the agent (pid 11) was killed by SIGKILL"},
          Refused{"train: no such file", 127},
          AttemptStarted{29500},
          WorkerStarted{2, 2, 102},
          WorkerEnded{Exited(2, 3), milliseconds(1500)},
          WorkerEnded{Killed(2, SIGKILL), milliseconds(1500)},
          WorkerEnded{unstarted, std::nullopt},
          StopBegun{"rank 2 failed: exit code 3"},
          Kill{"25.0 s have passed"},
          LeftBehind{SIGTERM, {7, 8}},
          NodeLost{"node n2 counts as lost"},
          NodeJoined{"n2", 1, 8},
          NodeRefused{"n3", "the job has 2 nodes"},
          NodeDropped{"n2", "node n2 has been silent for 10.0 s"},
          NodeReplaced{"n2", "n4", 2},
          RoundFormed{2, 16, 2, {"n1", "n2"}},
          RoundStopping{2, "n2", 9, "rank 9 on n2 (pid 7): exit code 3"},
          RestartDecided{2, 1, true, milliseconds(500), "node n2 is silent"},
          VerdictGiven{3, "rank 9 on n2 (pid 7): exit code 3"},
          Restart{1, 3, milliseconds(500), true, "rank 2 failed: exit code 3"},
          SomeReport(),
          JobEnded{3, 0, "rank 2 failed", 1, milliseconds(2500)},
          JobEnded{0, SIGINT, "stopped by SIGINT", 1, milliseconds(2500)},
          EventsLost{12}};
}

TEST(EventTest, ALineBeginsWithTimeKindJobAndAttempt) {
  using namespace std::chrono_literals;
  Event event{.time = std::chrono::system_clock::time_point(1'769'860'800'123'456us),
              .run_id = "job-7",
              .attempt = 2,
              .payload = AttemptStarted{29500}};
  EXPECT_EQ(FormatEvent(event),
            R"({"time":"2026-01-31T12:00:00.123456Z","event":"attempt_started",)"
            R"("run_id":"job-7","attempt":2,"store_port":29500})"
            "\n");
}

TEST(EventTest, AnEventOfTheWholeJobHasNoAttempt) {
  EXPECT_FALSE(json::parse(Line(Kill{"x"}, std::nullopt)).contains("attempt"));
}

TEST(EventTest, TheStartOfAJobNamesTheProgram) {
  EXPECT_EQ(Fields(JobStarted{"1.0", "n1", 10, 11, 4, 3, {"train", "--x"}}),
            json::parse(R"({"version": "1.0", "node": "n1", "guardian_pid": 10, "agent_pid": 11,
                            "workers": 4, "max_restarts": 3, "program": ["train", "--x"]})"));
}

TEST(EventTest, AnExitCodeAndASignalAreDifferentFields) {
  EXPECT_EQ(Fields(WorkerEnded{Exited(2, 3), milliseconds(1500)}),
            json::parse(R"({"rank": 2, "local_rank": 2, "pid": 102, "exit_code": 3,
                            "why": "exit code 3", "seconds": 1.5})"));
  EXPECT_EQ(Fields(WorkerEnded{Killed(2, SIGKILL), milliseconds(0)}),
            json::parse(R"({"rank": 2, "local_rank": 2, "pid": 102, "signal": 9,
                            "signal_name": "SIGKILL", "sent_by_rankrun": false,
                            "why": "killed by SIGKILL, not sent by rankrun", "seconds": 0.0})"));
}

TEST(EventTest, OurOwnSignalIsMarked) {
  WorkerRecord worker = Killed(0, SIGTERM);
  worker.sent_signal = SIGTERM;
  json fields = Fields(WorkerEnded{worker, std::nullopt});
  EXPECT_EQ(fields["sent_by_rankrun"], true);
  EXPECT_EQ(fields["why"], "killed by SIGTERM, sent by rankrun");
}

TEST(EventTest, AWorkerThatCouldNotBeStartedHasNoPid) {
  WorkerRecord worker;
  worker.start_error = Error{ErrorCode::kNotFound, "start /x: no such file"};
  EXPECT_EQ(Fields(WorkerEnded{worker, std::nullopt}),
            json::parse(R"({"rank": 0, "local_rank": 0, "start_error": "start /x: no such file",
                            "why": "could not be started: start /x: no such file"})"));
}

TEST(EventTest, AReportHasTheCauseTheConsequencesAndTheText) {
  EXPECT_EQ(Fields(SomeReport()), json::parse(R"({"seconds": 2.5,
      "cause": {"rank": 1, "local_rank": 1, "pid": 101, "exit_code": 3, "why": "exit code 3",
                "exception": "ValueError: no", "stderr": ["one", "two"],
                "stderr_file": "/tmp/e/1.stderr"},
      "consequences": [{"rank": 0, "local_rank": 0, "pid": 100, "signal": 15,
                        "signal_name": "SIGTERM", "sent_by_rankrun": true,
                        "why": "killed by SIGTERM, sent by rankrun"}],
      "more_consequences": [{"ranks": "ranks 2-9", "count": 8, "signal": 15,
                             "signal_name": "SIGTERM"}],
      "text": "rankrun: attempt 0 failed\n"})"));
}

TEST(EventTest, ALostNodeIsTheCauseAndAllWorkersAreConsequences) {
  Report report = SomeReport();
  size_t workers = report.record.workers.size();
  report.record.own_cause = "node n2 is silent";
  json fields = Fields(report);
  EXPECT_EQ(fields["cause"], json::parse(R"({"why": "node n2 is silent"})"));
  EXPECT_EQ(fields["consequences"].size(), workers);
}

TEST(EventTest, AReportHasTheLastOperations) {
  Report report = SomeReport();
  WorkerRecord& cause = report.record.workers[report.record.cause];
  cause.operations_file = "/tmp/e/1.operations.json";
  cause.last_operations = {{.what = "Barrier #1",
                            .group = "world",
                            .is_under_way = false,
                            .has_failed = true,
                            .ago = milliseconds(500)},
                           {.what = "Barrier #2",
                            .group = "world",
                            .is_under_way = true,
                            .has_failed = false,
                            .ago = milliseconds(250)}};
  const json fields = Fields(report);
  EXPECT_EQ(fields["cause"]["operations_file"], "/tmp/e/1.operations.json");
  EXPECT_EQ(fields["cause"]["operations"], json::parse(R"([
      {"operation": "Barrier #1", "group": "world", "state": "failed", "seconds": 0.5},
      {"operation": "Barrier #2", "group": "world", "state": "under way", "seconds": 0.25}])"));
}

TEST(EventTest, AReportHasTheStackOfAWorkerThatWasKilled) {
  Report report = SomeReport();
  WorkerRecord& cause = report.record.workers[report.record.cause];
  cause.stacks = {.frames = {"read(/x)", "main (a.py:3)"}, .note = "why", .file = "/l/stacks.txt"};
  const json fields = Fields(report);
  EXPECT_EQ(fields["cause"]["stack"], json({"read(/x)", "main (a.py:3)"}));
  EXPECT_EQ(fields["cause"]["stack_note"], "why");
  EXPECT_EQ(fields["cause"]["stacks_file"], "/l/stacks.txt");
  EXPECT_FALSE(fields["consequences"][0].contains("stack"));
}

TEST(EventTest, ALineIsValidWhateverTheStringsHold) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  std::string line = Line(StopBegun{bytes});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(line.find('\0'), std::string::npos);
  json object = json::parse(line);
  EXPECT_THAT(object["why"].get<std::string>(), HasSubstr("ABC"));
}

TEST(EventTest, TheTimeIsRightBeforeTheEpochToo) {
  using namespace std::chrono_literals;
  EXPECT_EQ(FormatTime(std::chrono::system_clock::time_point(-1us)), "1969-12-31T23:59:59.999999Z");
}

TEST(EventTest, TheExamplesHaveEveryKind) {
  std::set<size_t> kinds;
  for (const Payload& payload : OneOfEach()) kinds.insert(payload.index());
  EXPECT_EQ(kinds.size(), std::variant_size_v<Payload>);
}

// Parses docs/events.md: "### kind", followed by a table "| `field` | ...".
std::map<std::string, std::set<std::string>> Documented() {
  std::ifstream file(test::InSource("docs/events.md"));
  std::map<std::string, std::set<std::string>> kinds;
  std::string kind;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) kind = line.starts_with("### ") ? line.substr(4) : "";
    if (!kind.empty()) kinds[kind];
    if (kind.empty() || !line.starts_with("| `")) continue;
    std::istringstream cell(line.substr(2, line.find('|', 1) - 2));
    for (std::string name; std::getline(cell, name, '`') && std::getline(cell, name, '`');) {
      kinds[kind].insert(name);
    }
  }
  return kinds;
}

TEST(EventTest, TheDocumentHasEveryKindWithItsFields) {
  std::map<std::string, std::set<std::string>> made;
  for (const Payload& payload : OneOfEach()) {
    auto& fields = made[std::string(KindOf(payload))];
    json object = Fields(payload);
    for (const auto& [name, value] : object.items()) fields.insert(name);
  }
  EXPECT_EQ(Documented(), made);
}

}  // namespace
}  // namespace rankrun::agent::events

// The report that is kept, and `rankctl report`.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/process/harness.h"
#include "tests/process/nodes.h"
#include "tests/process/rankctl.h"

namespace rankrun::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct KeptReportTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(reports, error)) {
      const std::string name = entry.path().filename();
      if (name.ends_with(".report.json")) names.push_back(name);  // an agent may leave a draft
    }
    return names;
  }
  std::vector<std::string> Failing(std::vector<std::string> flags,
                                   const std::string& script) const {
    flags.push_back("--report-dir=" + reports);
    return Shell(std::move(flags), script);
  }
  // Runs `rankctl report`.
  std::unique_ptr<Job> Show(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"report", "--report-dir=" + reports});
    auto job = std::make_unique<Job>(Job::Options{.arguments = arguments, .program = kRankctl});
    job->Wait();
    return job;
  }

  ScratchFolder folder;
  std::string reports = folder.Path("a/reports");
};

TEST_F(KeptReportTest, IsPrintedAsTheJobDid) {
  Job run(
      {.arguments = Failing({"-n2", "--max-restarts=1"}, "test $RANK = 0 || exit 3; sleep 60")});
  EXPECT_EQ(run.Wait(), Code(3));
  ASSERT_EQ(Files().size(), 1u);
  EXPECT_EQ(Show({})->Out(), run.Err());
  struct stat status;
  ASSERT_EQ(stat(reports.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(KeptReportTest, HasAllEvents) {
  Job run({.arguments = Failing({"--max-restarts=1"}, "test $TORCHELASTIC_RESTART_COUNT = 1")});
  EXPECT_EQ(run.Wait(), Code(0));
  json document = json::parse(Show({"--json"})->Out());
  EXPECT_EQ(document["events"][0]["event"], "job_started");
  EXPECT_EQ(document["events"].back()["event"], "job_ended");
  EXPECT_EQ(document["events"].back()["exit_code"], 0);
}

TEST_F(KeptReportTest, AJobThatDidNotFailIsNotKept) {
  Job run({.arguments = Failing({}, "true")});
  EXPECT_EQ(run.Wait(), Code(0));
  Job stopped({.arguments = Failing({}, "echo up; exec sleep 60")});
  ASSERT_TRUE(stopped.WaitForOut("up"));
  stopped.Signal(SIGTERM);  // dash may lose a SIGINT
  EXPECT_EQ(stopped.Wait(), KilledBy(SIGTERM));
  EXPECT_EQ(Files().size(), 0u);
  auto shown = Show({});
  EXPECT_EQ(shown->Wait(), Code(1));
  EXPECT_THAT(shown->Err(), HasSubstr(reports + ": has no report; only jobs with a failure"));
}

TEST_F(KeptReportTest, ShowsTheJobThatIsAskedForOrElseTheLast) {
  for (const char* id : {"one", "two", "one-two"}) {
    Job run(
        {.arguments = Failing({std::string("--rdzv-id=") + id}, std::string("exit 3 # ") + id)});
    EXPECT_EQ(run.Wait(), Code(3));
  }
  EXPECT_EQ(Files().size(), 3u);
  for (const char* id : {"one", "two", "one-two"}) {
    json document = json::parse(Show({"--json", id})->Out());
    EXPECT_EQ(document["events"][0]["run_id"], id);
  }
  EXPECT_EQ(json::parse(Show({"--json"})->Out())["events"][0]["run_id"], "one-two");
  EXPECT_EQ(Show({"three"})->Wait(), Code(1));
}

TEST_F(KeptReportTest, ThePageHasTheCauseAndIsEscaped) {
  Job run({.arguments = Failing({"-n2", "--rdzv-id=<job>&\"7\""},
                                "test $RANK = 0 || { echo '<script>alert(1)</script> \x1b[1m' >&2; "
                                "exit 3; }; sleep 60")});
  EXPECT_EQ(run.Wait(), Code(3));
  const std::string path = folder.Path("page.html");
  auto shown = Show({"--html", path});
  EXPECT_EQ(shown->Wait(), Code(0)) << shown->Err();
  const std::string page = ReadText(path);
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("job &lt;job&gt;&amp;&quot;7&quot;"));
  EXPECT_THAT(page, HasSubstr("class=\"bar cause\""));
  Job parsed({.arguments = {"-c", "import sys, xml.dom.minidom as x; x.parse(sys.argv[1])", path},
              .program = "/usr/bin/python3"});
  EXPECT_EQ(parsed.Wait(), Code(0)) << parsed.Err();
}

TEST_F(KeptReportTest, ThePageMayGoToAPipe) {
  Job run({.arguments = Failing({}, "exit 3")});
  EXPECT_EQ(run.Wait(), Code(3));
  Job shown({.arguments = {"-c", "\"$0\" report --report-dir=\"$1\" --html /dev/stdout | cat",
                           kRankctl, reports},
             .program = "/bin/sh"});
  EXPECT_EQ(shown.Wait(), Code(0));
  EXPECT_THAT(shown.Out(), StartsWith("<!DOCTYPE html>")) << shown.Err();
  EXPECT_THAT(shown.Out(), ::testing::EndsWith("</html>\n"));
}

TEST_F(KeptReportTest, ContinuesAfterTheDeathOfTheAgent) {
  Job run(
      {.arguments = Failing({"--max-restarts=2", "--restart-pause=0.01"},
                            "echo up; test $TORCHELASTIC_RESTART_COUNT = 1 || exit 3; sleep 60")});
  ASSERT_TRUE(WaitFor([&] { return Files().size() == 1 && run.Out() == "up\nup\n"; }));
  kill(run.Agent(), SIGKILL);
  EXPECT_EQ(run.Wait(), Code(3)) << run.Err();
  ASSERT_EQ(Files().size(), 1u);
  json events = json::parse(Show({"--json"})->Out())["events"];
  std::vector<std::string> kinds;
  for (const json& event : events) kinds.push_back(event["event"]);
  EXPECT_EQ(std::ranges::count(kinds, "job_started"), 1);
  EXPECT_EQ(std::ranges::count(kinds, "agent_restarted"), 1);
  EXPECT_EQ(std::ranges::count(kinds, "report"), 2);
}

// The file goes on after the death of the agent, and ends with the job, which does not fail.
TEST_F(KeptReportTest, IsFinishedWhenTheJobSucceedsAfterTheDeathOfTheAgent) {
  Job run({.arguments = Failing({"--max-restarts=2", "--restart-pause=0.01"},
                                "echo up; case $TORCHELASTIC_RESTART_COUNT in 0) exit 3;; "
                                "1) sleep 60;; esac; until test -e " +
                                    folder.Path("go") + "; do sleep 0.02; done")});
  ASSERT_TRUE(WaitFor([&] { return Files().size() == 1 && run.Out() == "up\nup\n"; }));
  kill(run.Agent(), SIGKILL);
  EXPECT_TRUE(WaitFor([&] {
    return ReadText(reports + "/" + Files()[0]).find("agent_restarted") != std::string::npos;
  }));
  folder.Script("go", "");
  EXPECT_EQ(run.Wait(), Code(0)) << run.Err();
  json events = json::parse(Show({"--json"})->Out())["events"];
  EXPECT_EQ(events[0]["event"], "job_started");
  EXPECT_EQ(events.back()["event"], "job_ended");
  EXPECT_EQ(events.back()["exit_code"], 0);
}

TEST_F(KeptReportTest, NoneIsKeptWhenOnlyAnAgentDied) {
  Job run({.arguments = Failing({"--max-restarts=1"},
                                "echo up; test $TORCHELASTIC_RESTART_COUNT = 1 || sleep 60")});
  ASSERT_TRUE(run.WaitForOut("up"));
  kill(run.Agent(), SIGKILL);
  EXPECT_EQ(run.Wait(), Code(0)) << run.Err();
  EXPECT_EQ(Files().size(), 0u);
}

TEST_F(KeptReportTest, NoneIsKeptInDevNull) {
  const std::string state = folder.Path("state");
  for (const char* where : {"/dev/null", ""}) {
    Job run({.arguments = Shell({std::string("--report-dir=") + where}, "exit 3"),
             .variables = {{"XDG_STATE_HOME", state}}});
    EXPECT_EQ(run.Wait(), where[0] == '/' ? Code(3) : Code(2)) << run.Err();
  }
  EXPECT_NE(access(state.c_str(), F_OK), 0);
}

TEST_F(KeptReportTest, TheDefaultFolderIsTheUsersState) {
  const std::string state = folder.Path("state");
  Job run({.arguments = Shell({}, "exit 3"), .variables = {{"XDG_STATE_HOME", state}}});
  EXPECT_EQ(run.Wait(), Code(3));
  Job shown(
      {.arguments = {"report"}, .variables = {{"XDG_STATE_HOME", state}}, .program = kRankctl});
  EXPECT_EQ(shown.Wait(), Code(0)) << shown.Err();
  EXPECT_EQ(shown.Out(), run.Err());
}

// The job ends as without the folder; only a folder that was typed gives a warning.
TEST_F(KeptReportTest, AFolderThatCannotBeMadeCostsNothing) {
  folder.Script("a", "");  // a file in the place of the folder
  Job run({.arguments = Failing({}, "exit 3")});
  EXPECT_EQ(run.Wait(), Code(3));
  EXPECT_THAT(run.Err(),
              HasSubstr("rankrun: the report is not kept: create the folder " + reports));
  Job quiet(
      {.arguments = Shell({}, "exit 3"), .variables = {{"XDG_STATE_HOME", folder.Path("a")}}});
  EXPECT_EQ(quiet.Wait(), Code(3));
  EXPECT_THAT(quiet.Err(), Not(HasSubstr("not kept")));
  Job homeless(
      {.arguments = Shell({}, "exit 3"), .variables = {{"XDG_STATE_HOME", ""}, {"HOME", ""}}});
  EXPECT_EQ(homeless.Wait(), Code(3));
  EXPECT_THAT(homeless.Err(), Not(HasSubstr("not kept")));
}

struct KeptReportOfNodesTest : NodesTest {};

TEST_F(KeptReportOfNodesTest, HasTheWorkersOfAllNodes) {
  const std::string script =
      Stamped("until test -e go; do sleep 0.02; done; test $RANK = 2 && exit 3; sleep 60");
  const std::string reports = folder.Path("reports");
  Job& host = StartHost({"-n2", "--node-rank=0", "--report-dir=" + reports}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1", "--report-dir=" + folder.Path("other")}, script);
  ASSERT_TRUE(WaitForUp(3, 0)) << Errors();
  Touch("go");
  EXPECT_EQ(host.Wait(), Code(3)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(3)) << Errors();
  EXPECT_NE(access(folder.Path("other").c_str(), F_OK), 0);  // rank 0 is on another node
  Job shown({.arguments = {"report", "--json", "--report-dir=" + reports}, .program = kRankctl});
  EXPECT_EQ(shown.Wait(), Code(0)) << shown.Err();
  json events = json::parse(shown.Out())["events"];
  json report;
  for (const json& event : events) {
    if (event["event"] == "report") report = event;
  }
  EXPECT_EQ(report["cause"]["rank"], 2);
  EXPECT_TRUE(report["cause"].contains("node"));
  EXPECT_EQ(report["consequences"].size(), 2u);
}

}  // namespace
}  // namespace rankrun::testing

#include "agent/guardian/incarnation.h"

#include <gtest/gtest.h>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using std::chrono::seconds;

struct IncarnationTest : testing::Test {
  IncarnationTest() {
    spec.max_restarts = 3;
    auto created = JobMemory::Create();
    EXPECT_TRUE(created);
    memory.emplace(std::move(*created));
  }

  // Runs one incarnation in a process of its own, as agents do. It begins with
  // the record of the previous one.
  void Live(const std::function<void(Incarnation&)>& life) {
    pid_t agent = test::Fork([&] {
      auto pair = GuardianLink::CreatePair();
      Incarnation incarnation(std::move(pair->second), std::move(*memory));
      life(incarnation);
      return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(test::WaitForExit(agent), (ProcessExit{}));
  }
  // Does what the guardian does between two agents.
  void Restart() {
    JobRecord record = memory->Read();
    record.incarnation += 1;
    EXPECT_TRUE(memory->Write(record));
  }

  JobSpec spec;
  std::optional<JobMemory> memory;
};

TEST_F(IncarnationTest, TheFirstBeginsWithNothing) {
  Live([&](Incarnation& life) {
    EXPECT_TRUE(life.is_first());
    EXPECT_EQ(life.LeftOf(seconds(5)), seconds(5));
  });
  EXPECT_FALSE(memory->Read().may_restart);
}

TEST_F(IncarnationTest, TheNameAndTheTimeOfTheJobStay) {
  Live([&](Incarnation& life) {
    std::string run_id = "first";
    life.KeepRunId(run_id);
    life.Note(spec, 0, nullptr);
  });
  JobRecord record = memory->Read();
  record.job_began -= seconds(60);
  ASSERT_TRUE(memory->Write(record));
  Restart();
  Live([&](Incarnation& life) {
    std::string run_id = "second";
    life.KeepRunId(run_id);
    EXPECT_EQ(run_id, "first");
    EXPECT_LE(life.LeftOf(seconds(100)), seconds(40));
    EXPECT_GT(life.LeftOf(seconds(100)), seconds(0));
    EXPECT_EQ(life.LeftOf(seconds(50)), seconds(0));
  });
}

TEST_F(IncarnationTest, TheFolderIsRecordedBesideTheCoordinatorsState) {
  spec.events_file = "events.json";
  Live([&](Incarnation& life) {
    JobRecord record = life.record();
    record.state = "round 7";
    record.may_restart = true;
    life.Write(record);
    LogDirectory logs(JobFolder{.temporary_base = "", .path = "/nowhere"},
                      LogDirectory::Layout::kFolderPerWorker);
    life.Note(spec, 2, &logs);
    life.Note(spec, -1, &logs);
  });
  EXPECT_TRUE(memory->Read().may_restart);
  EXPECT_FALSE(memory->Read().restarts);
  EXPECT_EQ(memory->Read().state, "round 7");
  EXPECT_EQ(memory->Read().folder->path, "/nowhere");
  EXPECT_EQ(memory->Read().events_file, "events.json");
  EXPECT_EQ(memory->Read().attempt, 2);
}

}  // namespace
}  // namespace rankrun::agent

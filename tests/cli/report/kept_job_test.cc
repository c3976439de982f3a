#include "cli/report/kept_job.h"

#include <gtest/gtest.h>

namespace rankrun::cli {
namespace {

constexpr const char* kDocument = R"({"format": 1, "dropped_events": 2, "events": [
{"time":"2026-01-31T23:59:59.500000Z","event":"job_started","run_id":"job-7","version":"0.1","node":"n1","program":["a","b"]}
,{"time":"2026-01-31T23:59:59.500000Z","event":"attempt_started","attempt":0}
,{"time":"2026-02-01T00:00:00.000000Z","event":"worker_started","attempt":0,"rank":1,"pid":11}
,{"time":"2026-02-01T00:00:00.000000Z","event":"worker_started","attempt":0,"rank":0,"pid":10}
,{"time":"2026-02-01T00:00:01.500000Z","event":"worker_ended","attempt":0,"rank":1,"pid":11,"exit_code":3,"why":"exit code 3"}
,{"time":"2026-02-01T00:00:02.500000Z","event":"worker_ended","attempt":0,"rank":0,"pid":10,"signal":15,"why":"killed"}
,{"time":"2026-02-01T00:00:02.500000Z","event":"restart","attempt":0,"number":1,"of":2,"why":"rank 1 failed"}
,{"time":"2026-02-01T00:00:02.600000Z","event":"attempt_started","attempt":1}
,{"time":"2026-02-01T00:00:02.700000Z","event":"report","attempt":0,"seconds":3,"text":"one\n",
  "cause":{"rank":1,"exit_code":3,"why":"exit code 3","exception":"ValueError","stderr":["x"],
    "operations":[{"operation":"AllReduce #1","group":"world","state":"under way","seconds":0.5}]},
  "consequences":[{"rank":0,"why":"killed"},{"rank":2,"node":"n2","pid":12,"why":"killed"}],
  "more_consequences":[{"ranks":"rank 3","count":1,"exit_code":1}]}
,{"time":"2026-02-01T00:00:04.500000Z","event":"report","attempt":1,"text":"two\n","cause":{"why":"node n2 is lost"}}
,{"time":"2026-02-01T00:00:05.500000Z","event":"job_ended","exit_code":202,"why":"node n2 is lost"}
]})";

TEST(KeptJobTest, ADocumentIsRead) {
  auto job = ParseKeptJob(kDocument);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->run_id, "job-7");
  EXPECT_EQ(job->began, "2026-01-31 23:59:59 UTC");
  EXPECT_EQ(job->program, "a b");
  EXPECT_EQ(job->dropped_events, 2u);
  EXPECT_EQ(job->ended, 6);
  EXPECT_EQ(job->outcome, "exit code 202");
  EXPECT_TRUE(job->has_failed);
  ASSERT_EQ(job->attempts.size(), 2u);
  EXPECT_EQ(job->attempts[1].own_cause, "node n2 is lost");
  EXPECT_EQ(ReportTextOf(*job), "one\ntwo\n");
  ASSERT_EQ(job->notes.size(), 1u);
  EXPECT_EQ(job->notes[0].text, "restart 1 of 2: rank 1 failed");
}

TEST(KeptJobTest, WorkersHaveTheirTimesAndParts) {
  KeptAttempt attempt = ParseKeptJob(kDocument)->attempts[0];
  EXPECT_EQ(attempt.restart, "restart 1 of 2");
  EXPECT_EQ(attempt.ended, 3);
  ASSERT_EQ(attempt.workers.size(), 3u);
  const KeptWorker& cause = attempt.workers[1];
  EXPECT_EQ(cause.rank, 1);
  EXPECT_EQ(cause.part, KeptPart::kCause);
  EXPECT_EQ(cause.began, 0.5);
  EXPECT_EQ(cause.ended, 2);
  EXPECT_EQ(cause.exception, "ValueError");
  ASSERT_EQ(cause.operations.size(), 1u);
  EXPECT_EQ(cause.operations[0].state, "under way");
  EXPECT_EQ(attempt.workers[0].part, KeptPart::kConsequence);
  EXPECT_EQ(attempt.workers[2].node, "n2");
  EXPECT_FALSE(attempt.workers[2].began);
}

// The oldest events of a large document are dropped; its newest report stays.
TEST(KeptJobTest, AReportMakesItsAttempt) {
  auto job = ParseKeptJob(R"({"format": 1, "dropped_events": 9, "events": [
{"time":"2026-01-31T00:00:00.000000Z","event":"job_started","run_id":"job-7"}
,{"time":"2026-01-31T00:00:20.000000Z","event":"worker_ended","attempt":3,"rank":0,"why":"killed"}
,{"time":"2026-01-31T00:00:20.000000Z","event":"attempt_started","attempt":5}
,{"time":"2026-01-31T00:00:21.000000Z","event":"report","attempt":4,"seconds":6,"text":"four\n",
  "cause":{"rank":1,"exit_code":3,"why":"exit code 3"}}
]})");
  ASSERT_TRUE(job) << job.error().message;
  ASSERT_EQ(job->attempts.size(), 3u);
  EXPECT_EQ(job->attempts[0].number, 3);
  const KeptAttempt& reported = job->attempts[1];
  EXPECT_EQ(reported.number, 4);
  EXPECT_EQ(reported.began, 15);
  EXPECT_EQ(reported.ended, 21);
  EXPECT_EQ(reported.workers[0].part, KeptPart::kCause);
  EXPECT_EQ(ReportTextOf(*job), "four\n");
}

TEST(KeptJobTest, WorkersThatAreOnlyCountedAreKept) {
  auto job = ParseKeptJob(R"({"format": 1, "events": [
{"time":"2026-01-31T00:00:00.000000Z","event":"attempt_started","attempt":0}
,{"time":"2026-01-31T00:00:21.000000Z","event":"report","attempt":0,"text":"x\n",
  "cause":{"rank":1,"exit_code":3,"why":"exit code 3"},"consequences":[{"rank":0}],
  "more_consequences":[{"ranks":"ranks 2-9","count":8,"signal":15,"signal_name":"SIGTERM"},
    {"ranks":"rank 10","count":1,"exit_code":1},{"ranks":"ranks 11, 12","count":2}, 3]}
]})");
  ASSERT_TRUE(job) << job.error().message;
  const std::vector<KeptRanks>& counted = job->attempts[0].counted;
  ASSERT_EQ(counted.size(), 3u);
  EXPECT_EQ(counted[0].ranks, "ranks 2-9");
  EXPECT_EQ(counted[0].how, "killed by SIGTERM");
  EXPECT_EQ(counted[1].how, "exit code 1");
  EXPECT_EQ(counted[2].how, "ended in other ways");
  EXPECT_EQ(RankCount(*job), 13u);
}

TEST(KeptJobTest, OtherFilesAreRefused) {
  for (const char* text : {"", "{", "[]", "3", "{\"events\": []}", "{\"format\": 1}"}) {
    EXPECT_FALSE(ParseKeptJob(text)) << text;
  }
}

// Fields of another type count as missing; nothing throws.
TEST(KeptJobTest, AnyFieldMayHaveAnyType) {
  const std::string text = kDocument;
  for (const char* value : {"null", "\"x\"", "[1]", "{\"a\":1}", "-1e308", "true"}) {
    for (size_t colon = text.find(':'); colon != text.npos; colon = text.find(':', colon + 1)) {
      const size_t end = text.find_first_of(",}]\n", colon);
      std::string changed = text.substr(0, colon + 1) + value + text.substr(end);
      auto job = ParseKeptJob(changed);
      if (job) ReportTextOf(*job);
    }
  }
}

}  // namespace
}  // namespace rankrun::cli

#include "agent/nodes/job_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>

#include "agent/control/cbor.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;

WorkerRecord Worker(int rank, ProcessExit exit, int sent_signal = 0) {
  WorkerRecord worker;
  worker.node = "n1";
  worker.global_rank = rank;
  worker.local_rank = rank % 2;
  worker.pid = 100 + rank;
  worker.exit = exit;
  worker.sent_signal = sent_signal;
  return worker;
}

WorkerRecord FailedWorker(int rank) { return Worker(rank, {.signaled = false, .value = 7}); }
WorkerRecord StoppedWorker(int rank) {
  return Worker(rank, {.signaled = true, .value = SIGTERM}, SIGTERM);
}

AttemptRecord Record(std::vector<WorkerRecord> workers, size_t cause = 0) {
  AttemptRecord record;
  record.attempt = 2;
  record.cause = cause;
  record.workers = std::move(workers);
  return record;
}

TEST(JobReportTest, OtherNodesGetEverythingThatAReportShows) {
  AttemptRecord record = Record({StoppedWorker(4), FailedWorker(5)}, 1);
  record.max_restarts = 3;
  record.restarts = true;
  record.restart_number = 2;
  record.is_free = true;
  record.own_cause = "node n2 is silent";
  record.cause_nodes = "n2 (attempts 0-1)";
  record.next_reason = "at once";
  record.exit_code = 7;
  record.lasted = milliseconds(1500);
  WorkerRecord& failed = record.workers[1];
  failed.stderr_tail = "Traceback\n";
  failed.stderr_file = "/logs/5/stderr.log";
  failed.exception = "ValueError: \xff is no text";
  failed.start_error = Error{ErrorCode::kNotFound, "no such file"};
  failed.kill_note = "out of memory";
  failed.activity = {.what = "in Barrier #7 of world", .lasted = milliseconds(30)};
  failed.last_operations = {{.what = "Barrier #7",
                             .group = "world",
                             .is_under_way = true,
                             .has_failed = false,
                             .ago = milliseconds(30)}};
  failed.operations_file = "/logs/5/operations.json";
  failed.stacks = {.frames = {"read(/x)", "main (a.py:3)"}, .note = "why", .file = "/logs/s"};
  auto read = DecodeReport(EncodeReport(record, kMaxPartBytes));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->attempt, 2);
  EXPECT_EQ(read->max_restarts, 3);
  EXPECT_TRUE(read->restarts && read->is_free);
  EXPECT_EQ(read->restart_number, 2);
  EXPECT_EQ(read->own_cause, record.own_cause);
  EXPECT_EQ(read->cause_nodes, record.cause_nodes);
  EXPECT_EQ(read->next_reason, "at once");
  EXPECT_EQ(read->exit_code, 7);
  EXPECT_EQ(read->lasted, record.lasted);
  ASSERT_EQ(read->workers.size(), 2U);
  ASSERT_EQ(read->cause, 1U);
  EXPECT_EQ(HowItEnded(read->workers[0]), HowItEnded(record.workers[0]));
  const WorkerRecord& shown = read->workers[1];
  EXPECT_EQ(shown.node, "n1");
  EXPECT_EQ(shown.pid, 105);
  EXPECT_EQ(shown.exit, failed.exit);
  EXPECT_EQ(shown.stderr_tail, failed.stderr_tail);
  EXPECT_EQ(shown.stderr_file, failed.stderr_file);
  EXPECT_EQ(shown.exception, failed.exception);
  EXPECT_EQ(shown.start_error->message, "no such file");
  EXPECT_EQ(shown.kill_note, failed.kill_note);
  EXPECT_EQ(shown.activity.what, failed.activity.what);
  EXPECT_EQ(shown.activity.lasted, failed.activity.lasted);
  ASSERT_EQ(shown.last_operations.size(), 1U);
  EXPECT_EQ(shown.last_operations[0].what, "Barrier #7");
  EXPECT_EQ(shown.last_operations[0].group, "world");
  EXPECT_TRUE(shown.last_operations[0].is_under_way && !shown.last_operations[0].has_failed);
  EXPECT_EQ(shown.last_operations[0].ago, milliseconds(30));
  EXPECT_EQ(shown.operations_file, failed.operations_file);
  EXPECT_EQ(shown.stacks, failed.stacks);
  EXPECT_EQ(read->workers[0].stacks, WorkerStacks{});
}

TEST(JobReportTest, AStackOfTooManyFramesIsRefused) {
  AttemptRecord record = Record({FailedWorker(0)});
  record.workers[0].stacks.frames.assign(kMaxRecordFrames, "f");
  EXPECT_TRUE(DecodeReport(EncodeReport(record, kMaxPartBytes)));
  record.workers[0].stacks.frames.emplace_back("g");
  EXPECT_FALSE(DecodeReport(EncodeReport(record, kMaxPartBytes)));
}

TEST(JobReportTest, AReportFitsIntoAFrameWhateverTheJobsSize) {
  std::vector<WorkerRecord> workers;
  for (int rank = 0; rank < 2000; ++rank) {
    workers.push_back(FailedWorker(rank));
    workers.back().stderr_tail = std::string(16 * 1024, 'x') + "the end";
  }
  AttemptRecord record = Record(std::move(workers), 1321);
  for (size_t max_bytes : {kMaxPartBytes, kMaxReportBytes}) {
    std::string bytes = EncodeReport(record, max_bytes);
    EXPECT_LE(bytes.size(), max_bytes);
    auto read = DecodeReport(bytes);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_GT(read->workers.size(), 100u);
    ASSERT_EQ(read->left_out.size(), 1u);
    EXPECT_EQ(read->workers.size() + static_cast<size_t>(read->left_out[0].count), 2000u);
    const WorkerRecord& cause = read->workers[read->cause];
    EXPECT_EQ(cause.global_rank, 1321);
    EXPECT_THAT(cause.stderr_tail, EndsWith("the end"));
  }
}

TEST(JobReportTest, ALargePartKeepsOneThatNamesItsCause) {
  std::vector<WorkerRecord> workers;
  for (int rank = 0; rank < 1000; ++rank) {
    workers.push_back(FailedWorker(rank));
    workers.back().ending = Ending{EndKind::kRaisedAfterSignal};
  }
  constexpr int kCause = 700;
  workers[kCause].ending = Ending{EndKind::kStopped};
  workers.back().ending = Ending{EndKind::kLostPeer, kCause};
  auto read = DecodeReport(EncodeReport(Record(std::move(workers), kCause), kMaxPartBytes));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_LT(read->workers.size(), 1000u);
  const AttemptRecord merged = MergeReports({*read}, std::nullopt);
  EXPECT_EQ(merged.workers[merged.cause].global_rank, kCause);
}

#ifdef RANKRUN_SANITIZED
constexpr int kNodes = 100;  // a sanitizer needs a hundred times as long
#else
constexpr int kNodes = 10'000;
#endif

// Each node sends its part, and gets the whole.
TEST(JobReportTest, ReportsOfTenThousandNodesAreSmall) {
  constexpr int kWorkersOfANode = 8, kCause = kNodes * 4 + 7;
  std::vector<AttemptRecord> parts;
  size_t largest = 0, all = 0;
  for (int node = 0; node < kNodes; ++node) {
    std::vector<WorkerRecord> workers;
    for (int i = 0; i < kWorkersOfANode; ++i) {
      const int rank = node * kWorkersOfANode + i;
      workers.push_back(rank == kCause ? FailedWorker(rank) : StoppedWorker(rank));
      workers.back().ending = Ending{rank == kCause ? EndKind::kFailed : EndKind::kStopped};
      workers.back().stderr_tail = std::string(16 * 1024, 'x') + "the end";
      workers.back().stderr_file = "/logs/job/attempt_0/0/stderr.log";
      workers.back().activity.what = "in AllReduce #12 (16 x float32, sum) of world";
    }
    const size_t cause = node == kCause / kWorkersOfANode ? kCause % kWorkersOfANode : 0;
    std::string part = EncodeReport(Record(std::move(workers), cause), kMaxPartBytes);
    largest = std::max(largest, part.size());
    all += part.size();
    parts.push_back(*DecodeReport(part));
  }
  EXPECT_LE(largest, kMaxPartBytes);
  EXPECT_LE(all, 128u << 20);
  const AttemptRecord merged = MergeReports(std::move(parts), std::nullopt);
  const std::string bytes = EncodeReport(merged, kMaxReportBytes);
  EXPECT_LE(bytes.size(), 64u << 10);
  auto read = DecodeReport(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->workers[read->cause].global_rank, kCause);
  EXPECT_THAT(read->workers[read->cause].stderr_tail, EndsWith("the end"));
  int64_t count = static_cast<int64_t>(read->workers.size());
  for (const LeftOut& left_out : read->left_out) count += left_out.count;
  EXPECT_EQ(count, kNodes * kWorkersOfANode);
}

TEST(JobReportTest, EachWorkerOfAUsualNodeKeepsItsExceptionAndItsLog) {
  std::vector<WorkerRecord> workers;
  for (int rank = 0; rank < 16; ++rank) {
    workers.push_back(FailedWorker(rank));
    workers.back().stderr_tail = std::string(4096, 'x');
    workers.back().exception = std::string(4096, 'y') + "the end";
    workers.back().stderr_file = "/logs/stderr";
  }
  auto read = DecodeReport(EncodeReport(Record(std::move(workers), 3), kMaxPartBytes));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->workers.size(), 16u);
  for (const WorkerRecord& worker : read->workers) {
    EXPECT_EQ(worker.stderr_file, "/logs/stderr");
    EXPECT_THAT(worker.exception.value_or(""), EndsWith("the end")) << worker.global_rank;
  }
}

TEST(JobReportTest, TheTimeSinceATimerExpiredReachesOtherNodes) {
  WorkerRecord worker;
  worker.exit = ProcessExit{.signaled = true, .value = 9};
  worker.ended = TimePoint(std::chrono::hours(3));
  worker.timer = ExpiredTimer{"step", 9, worker.ended - std::chrono::milliseconds(1'500)};
  AttemptRecord record;
  record.workers = {worker};
  auto decoded = DecodeReport(EncodeReport(record, kMaxPartBytes));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(HowItEnded(decoded->workers[0]), HowItEnded(worker));
}

TEST(JobReportTest, AnInvalidReportIsRefused) {
  EXPECT_THAT(DecodeReport("").error().message, HasSubstr("not a CBOR map"));
  EXPECT_FALSE(DecodeReport("\xa1\x61\x61\x01"));
  EXPECT_THAT(DecodeReport(EncodeReport(Record({}), kMaxPartBytes)).error().message,
              HasSubstr("without its cause"));
}

// More would overflow where a time has nanoseconds.
TEST(JobReportTest, ATimeOfAnotherNodeIsAYearAtMost) {
  constexpr auto kYear = std::chrono::hours(24 * 365);
  auto read_with = [](int64_t microseconds) {
    auto json = *ParseCborMap(EncodeReport(Record({FailedWorker(5)}), kMaxPartBytes));
    json["lasted_us"] = microseconds;
    return DecodeReport(CborOf(json));
  };
  EXPECT_EQ(read_with(1'500)->lasted, std::chrono::microseconds(1'500));
  EXPECT_EQ(read_with(std::numeric_limits<int64_t>::max())->lasted, kYear);
  EXPECT_EQ(read_with(-1)->lasted, Duration::zero());
}

TEST(MergeReportsTest, RanksAreInOrderAndTheKnownCauseIsKept) {
  AttemptRecord all = MergeReports(
      {Record({StoppedWorker(2), FailedWorker(3)}, 1), Record({FailedWorker(0), StoppedWorker(1)})},
      3);
  ASSERT_EQ(all.workers.size(), 4U);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(all.workers[static_cast<size_t>(rank)].global_rank, rank);
  }
  EXPECT_EQ(all.cause, 3U);
}

TEST(MergeReportsTest, WithoutAKnownCauseItIsAPrimaryFailure) {
  AttemptRecord all =
      MergeReports({Record({StoppedWorker(0)}), Record({FailedWorker(1)})}, std::nullopt);
  EXPECT_EQ(all.cause, 1U);
}

TEST(MergeReportsTest, ACauseWhosePartIsMissingIsNotInvented) {
  AttemptRecord all = MergeReports({Record({StoppedWorker(0)})}, 9);
  EXPECT_EQ(all.cause, 0U);
}

}  // namespace
}  // namespace rankrun::agent

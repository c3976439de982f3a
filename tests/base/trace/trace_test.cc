#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/trace/trace_reader.h"
#include "base/trace/trace_writer.h"

namespace rankrun {
namespace {

namespace fs = std::filesystem;

constexpr uint8_t kAllReduce = 1;

struct TraceTest : testing::Test {
  TraceTest() {
    std::string name = testing::TempDir() + "trace_test-XXXXXX";
    folder = mkdtemp(name.data());
  }
  ~TraceTest() override { fs::remove_all(folder); }

  std::unique_ptr<TraceWriter> Create(int rank = 3, int attempt = 1) const {
    auto writer = TraceWriter::Create(folder, {.rank = rank, .attempt = attempt, .run_id = "a/b"});
    EXPECT_TRUE(writer) << writer.error().message;
    return writer ? *std::move(writer) : nullptr;
  }
  Trace Read(const std::string& path) const {
    auto trace = ReadTrace(path);
    EXPECT_TRUE(trace) << trace.error().message;
    return trace ? *std::move(trace) : Trace{};
  }

  std::string folder;
};

TraceRecord AllReduceOf(uint64_t number, uint32_t group) {
  TraceRecord record{};
  record.numbers = PackedKinds(kAllReduce, 2, 3, -1);
  record.number = number;
  record.count = 16;
  record.bytes = 32;
  record.group = group;
  return record;
}

TEST_F(TraceTest, EachOperationIsReadAsItWasWritten) {
  auto writer = Create();
  const uint32_t group = writer->AddGroup("a group with a name of more than 32 bytes", 77, 4);
  TraceRecord* first = writer->Begin(AllReduceOf(1, group));
  writer->End(first);
  TraceRecord send{};
  send.numbers = PackedKinds(10, 8, 0, 2) | kTraceFailed;
  send.tag = 5;
  send.group = group;
  writer->Begin(send);
  TraceRecord get{};
  get.numbers = PackedKinds(trace_kind::kStoreGet, 0, 0, -1);
  get.text = writer->AddText("key");
  writer->End(writer->Begin(get));

  EXPECT_EQ(writer->path(), folder + "/a_b/attempt_1/rank_3.trace");
  Trace trace = Read(writer->path());
  EXPECT_EQ(trace.rank, 3);
  EXPECT_EQ(trace.attempt, 1);
  EXPECT_EQ(trace.pid, getpid());
  EXPECT_EQ(trace.run_id, "a/b");
  EXPECT_EQ(trace.lost, 0U);
  ASSERT_EQ(trace.groups.size(), 1U);
  EXPECT_EQ(trace.groups[0].name, "a group with a name of more than 32 bytes");
  EXPECT_EQ(trace.groups[0].key, 77U);
  EXPECT_EQ(trace.groups[0].size, 4);
  ASSERT_EQ(trace.operations.size(), 3U);
  const TracedOperation& all_reduce = trace.operations[0];
  EXPECT_STREQ(NameOfTraced(all_reduce.kind), "AllReduce");
  EXPECT_TRUE(all_reduce.is_finished);
  EXPECT_FALSE(all_reduce.has_failed);
  EXPECT_EQ(all_reduce.dtype, 2);
  EXPECT_EQ(all_reduce.op, 3);
  EXPECT_EQ(all_reduce.peer, -1);
  EXPECT_EQ(all_reduce.group, 0);
  EXPECT_EQ(all_reduce.number, 1U);
  EXPECT_EQ(all_reduce.count, 16U);
  EXPECT_EQ(all_reduce.bytes, 32U);
  EXPECT_GE(all_reduce.end, all_reduce.begin);
  EXPECT_FALSE(trace.operations[1].is_finished);
  EXPECT_TRUE(trace.operations[1].has_failed);
  EXPECT_EQ(trace.operations[1].peer, 2);
  EXPECT_EQ(trace.operations[1].tag, 5U);
  EXPECT_STREQ(NameOfTraced(trace.operations[2].kind), "StoreGet");
  EXPECT_EQ(trace.operations[2].key, "key");
}

// The times of this thread may have a pause between the event and the reading of the
// clock, so that the best of several counts.
TEST_F(TraceTest, TimesAreThoseOfTheMonotonicClock) {
  auto writer = Create();
  auto now = [] { return MonotonicClock().Now().time_since_epoch().count(); };
  // Long enough for the second reading of the clocks.
  for (int64_t until = now() + 20'000'000; now() < until;) {
    writer->End(writer->Begin(AllReduceOf(1, 0)));
  }
  int64_t best = INT64_MAX;  // largest error of a reading
  for (int i = 0; i < 100; ++i) {
    const int64_t before = now();
    writer->End(writer->Begin(AllReduceOf(2, 0)));
    const int64_t after = now();
    const TracedOperation last = Read(writer->path()).operations.back();
    best = std::min(best, std::max(before - last.begin, last.end - after));
    constexpr int64_t kError = 20'000;
    if (best <= kError) return;
  }
  FAIL() << best << " ns";
}

TEST_F(TraceTest, AFirstOperationThatWaitsHasItsDuration) {
  auto writer = Create();
  auto now = [] { return MonotonicClock().Now().time_since_epoch().count(); };
  const int64_t before = now();
  TraceRecord* record = writer->Begin(AllReduceOf(1, 0));
  constexpr int64_t kLong = 50'000'000;
  while (now() < before + kLong) {
  }
  writer->End(record);
  const int64_t after = now();
  const TracedOperation wait = Read(writer->path()).operations.at(0);
  EXPECT_GE(wait.end - wait.begin, kLong * 9 / 10);
  EXPECT_LE(wait.end - wait.begin, (after - before) * 11 / 10);
}

TEST(TickScaleTest, TheReadingsThatAreFarthestApartCount) {
  const ClockReading first{.ticks = 1000, .monotonic = 500, .realtime = 0};
  TickScale scale(first, first);
  scale.Add({{.ticks = 1200, .monotonic = 550, .realtime = 0},
             {.ticks = 5000, .monotonic = 1500, .realtime = 0}});
  EXPECT_EQ(scale.Monotonic(3000), 1000);
  scale.Add({{.ticks = 600, .monotonic = 400, .realtime = 0},
             {.ticks = 1600, .monotonic = 700, .realtime = 0}});
  EXPECT_EQ(scale.Monotonic(600), 400);
  EXPECT_EQ(scale.Monotonic(5000), 1500);
}

TEST_F(TraceTest, AProcessThatIsKilledLeavesAllThatItWrote) {
  constexpr uint64_t kEnded = (kTraceRingBlocks + 3) * kTraceBlockRecords + 10;
  const pid_t child = fork();
  if (child == 0) {
    auto writer = Create(0, 0);
    for (uint64_t i = 1; i <= kEnded; ++i) {
      writer->End(writer->Begin(AllReduceOf(i, 0)));
    }
    writer->Begin(AllReduceOf(0, 0));
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  Trace trace = Read(TracePath(folder, {.rank = 0, .attempt = 0, .run_id = "a/b"}));
  ASSERT_EQ(trace.operations.size(), kEnded + 1);
  std::vector<bool> is_there(kEnded + 1);
  for (const auto& operation : trace.operations) {
    if (operation.is_finished) is_there.at(operation.number) = true;
  }
  EXPECT_EQ(std::ranges::count(is_there, true), kEnded);
  EXPECT_EQ(std::ranges::count(trace.operations, false, &TracedOperation::is_finished), 1);
}

TEST_F(TraceTest, ThreadsShareAFile) {
  auto writer = Create();
  constexpr uint64_t kEach = 20'000;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < kEach; ++i) {
        writer->End(writer->Begin(AllReduceOf(thread * kEach + i, 0)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Trace trace = Read(writer->path());
  ASSERT_EQ(trace.operations.size(), 4 * kEach);
  std::vector<uint64_t> numbers;
  for (const auto& operation : trace.operations) numbers.push_back(operation.number);
  std::ranges::sort(numbers);
  for (uint64_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], i);
}

TEST_F(TraceTest, OperationsMayOverlapAndEndInAnyOrder) {
  auto writer = Create();
  std::vector<TraceRecord*> begun;
  for (uint64_t i = 0; i < kTracesUnderWay; ++i) begun.push_back(writer->Begin(AllReduceOf(i, 0)));
  EXPECT_EQ(writer->Begin(AllReduceOf(kTracesUnderWay, 0)), nullptr);
  for (size_t i = begun.size(); i-- > 100;) writer->End(begun[i]);
  Trace trace = Read(writer->path());
  EXPECT_EQ(trace.lost, 1U);
  ASSERT_EQ(trace.operations.size(), kTracesUnderWay);
  std::vector<bool> is_finished(kTracesUnderWay);
  for (const auto& operation : trace.operations) {
    is_finished.at(operation.number) = operation.is_finished;
  }
  for (uint64_t i = 0; i < kTracesUnderWay; ++i) EXPECT_EQ(is_finished[i], i >= 100);
}

TEST_F(TraceTest, AFileThatIsThereStays) {
  auto first = Create();
  auto second = Create();
  EXPECT_EQ(second->path(), folder + "/a_b/attempt_1/rank_3.2.trace");
}

TEST_F(TraceTest, ALimitOfTheSizeOfFilesEndsTheTraceNotTheProcess) {
  constexpr uint64_t kFit = (kTraceRingBlocks + 2) * kTraceBlockRecords;
  const pid_t child = fork();
  if (child == 0) {
    constexpr rlim_t kLimit = sizeof(TraceMapping) + 2 * kTraceBlockBytes + 100;
    const rlimit small{.rlim_cur = kLimit, .rlim_max = kLimit};
    setrlimit(RLIMIT_FSIZE, &small);
    auto writer = Create(0, 0);
    for (uint64_t i = 1; i <= kFit + 5; ++i) writer->End(writer->Begin(AllReduceOf(i, 0)));
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  Trace trace = Read(TracePath(folder, {.rank = 0, .attempt = 0, .run_id = "a/b"}));
  EXPECT_EQ(trace.operations.size(), kFit);
  EXPECT_EQ(trace.lost, 5U);
}

// A record is made to look unwritten, as if its thread were in the middle of it.
TEST_F(TraceTest, ARecordThatIsLateLosesOperationsUntilItIsWritten) {
  auto writer = Create();
  writer->End(writer->Begin(AllReduceOf(1, 0)));
  Fd file(open(writer->path().c_str(), O_RDWR | O_CLOEXEC));
  const auto at = static_cast<off_t>(offsetof(TraceMapping, ring));
  uint64_t begin = 0;
  ASSERT_EQ(pread(file.get(), &begin, sizeof begin, at), sizeof begin);
  const uint64_t unwritten = 0;
  ASSERT_EQ(pwrite(file.get(), &unwritten, sizeof unwritten, at), sizeof unwritten);
  constexpr uint64_t kRing = kTraceRingBlocks * kTraceBlockRecords;
  for (uint64_t i = 2; i <= kRing + 3; ++i) writer->End(writer->Begin(AllReduceOf(i, 0)));
  EXPECT_EQ(Read(writer->path()).lost, 3U);
  ASSERT_EQ(pwrite(file.get(), &begin, sizeof begin, at), sizeof begin);
  writer->End(writer->Begin(AllReduceOf(kRing + 4, 0)));
  Trace trace = Read(writer->path());
  EXPECT_EQ(trace.lost, 3U);
  EXPECT_EQ(trace.operations.size(), kRing + 1);
}

TEST_F(TraceTest, AProcessThatTheRankHasStartedIsNoRank) {
  auto writer = Create();
  const pid_t child = fork();
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      auto own = TraceWriter::Create(folder, {.rank = 3, .attempt = 1, .run_id = "a/b"});
      _exit(!own && own.error().code == ErrorCode::kMismatch ? 0 : 1);
    }
    int status = 1;
    waitpid(grandchild, &status, 0);
    _exit(status == 0 ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(fs::exists(folder + "/a_b/attempt_1/rank_3.2.trace"));
}

TEST_F(TraceTest, AnotherFileIsRefused) {
  const std::string path = folder + "/x.trace";
  EXPECT_EQ(ReadTrace(path).error().code, ErrorCode::kNotFound);
  std::ofstream(path) << "short";
  EXPECT_EQ(ReadTrace(path).error().message, path + ": is no trace of rankrun");
  std::ofstream(path) << std::string(2 * sizeof(TraceMapping), 'x');
  EXPECT_EQ(ReadTrace(path).error().message, path + ": is no trace of rankrun");
}

TEST_F(TraceTest, AFileThatIsIncompleteIsNotFound) {
  const std::string path = folder + "/rank_0.trace";
  const std::string magic = "RRTRACE1";
  for (const std::string& content :
       {std::string(), std::string(100, '\0'), std::string(2 * sizeof(TraceMapping), '\0'),
        magic + std::string(100, '\0')}) {
    std::ofstream(path) << content;
    auto owner = ReadTraceOwner(path);
    ASSERT_FALSE(owner);
    EXPECT_EQ(owner.error().code, ErrorCode::kNotFound) << content.size();
    EXPECT_THAT(owner.error().message, testing::StartsWith(path + ": is incomplete"));
  }
}

TEST_F(TraceTest, AFileWithoutRoomDoesNotStay) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{.rlim_cur = 4096, .rlim_max = 4096};
    setrlimit(RLIMIT_FSIZE, &small);
    _exit(TraceWriter::Create(folder, {.rank = 3, .attempt = 1, .run_id = "a/b"}) ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::is_empty(folder + "/a_b/attempt_1"));
}

TEST(TickScaleTest, ReadingsOfADamagedFileAreNotPlausible) {
  const ClockReading first{.ticks = 1000, .monotonic = 500, .realtime = 0};
  auto is_plausible = [&](ClockReading last) { return TickScale(first, last).is_plausible(); };
  EXPECT_TRUE(is_plausible(first));
  EXPECT_TRUE(is_plausible({.ticks = 2000, .monotonic = 900, .realtime = 0}));
  EXPECT_FALSE(is_plausible({.ticks = 999, .monotonic = 900, .realtime = 0}));
  EXPECT_FALSE(is_plausible({.ticks = 2000, .monotonic = 501, .realtime = 0}));
  EXPECT_FALSE(is_plausible({.ticks = 2000, .monotonic = 2'000'000, .realtime = 0}));
  EXPECT_FALSE(is_plausible({.ticks = 2000, .monotonic = -1, .realtime = 0}));
  EXPECT_FALSE(is_plausible({.ticks = 2000, .monotonic = 900, .realtime = INT64_MAX}));
}

TEST_F(TraceTest, TimesFarFromTheReadingsAreLeftOut) {
  auto writer = Create();
  writer->End(writer->Begin(AllReduceOf(1, 0)));
  TraceRecord* damaged = writer->Begin(AllReduceOf(2, 0));
  damaged->begin = UINT64_MAX / 3;
  writer->End(damaged);
  EXPECT_EQ(Read(writer->path()).operations.size(), 1U);
}

TEST_F(TraceTest, APipeIsRefused) {
  const std::string path = folder + "/rank_0.trace";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(ReadTrace(path).error().message, path + ": is no trace of rankrun");
}

// Reads the file while a thread writes three times as many blocks as the ring has.
TEST_F(TraceTest, AFileThatIsWrittenHasEachOperationOnce) {
  auto writer = Create();
  std::atomic<bool> is_over = false;
  std::jthread thread([&] {
    for (uint64_t i = 1; i <= 3 * kTraceRingBlocks * kTraceBlockRecords; ++i) {
      TraceRecord* record = writer->Begin(AllReduceOf(i, 0));
      if (i % 2 == 0) record->numbers |= kTraceFailed;
      writer->End(record);
    }
    is_over = true;
  });
  for (bool is_last = false; !is_last;) {
    is_last = is_over;
    std::vector<uint64_t> numbers;
    for (const auto& operation : Read(writer->path()).operations) {
      numbers.push_back(operation.number);
      const bool is_even = operation.number % 2 == 0;
      EXPECT_TRUE(!operation.is_finished || operation.has_failed == is_even);
    }
    std::ranges::sort(numbers);
    for (uint64_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], i + 1);
  }
}

TEST_F(TraceTest, AFullTraceCountsWhatItLoses) {
  constexpr size_t kBlocks = kTraceRingBlocks + 2;
  auto created = TraceWriter::Create(folder, {.rank = 3, .attempt = 1, .run_id = "a/b"}, kBlocks);
  ASSERT_TRUE(created);
  auto& writer = *created;
  const std::string path = writer->path();
  for (uint64_t i = 0; i < kBlocks * kTraceBlockRecords; ++i) writer->End(writer->Begin({}));
  writer->End(writer->Begin({}));
  EXPECT_EQ(writer->AddText("x"), 1U);  // no operation
  auto owner = ReadTraceOwner(path);
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->lost, 1U);
}

}  // namespace
}  // namespace rankrun

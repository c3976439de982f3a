#include "agent/report/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status/activity.h"
#include "base/status/status_page.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"
#include "tests/agent/report/pickled.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Writes a dump of PyTorch's flight recorder with one call.
void WriteDump(const std::string& path) {
  const std::string call =
      pickled::Dict({{"process_group", pickled::Tuple(pickled::Text("0"), pickled::Text("world"))},
                     {"collective_seq_id", pickled::Int(1)},
                     {"profiling_name", pickled::Text("nccl:all_reduce")}});
  std::ofstream(path) << pickled::Whole(
      pickled::Dict({{"version", pickled::Text("2.10")}, {"entries", pickled::List({call})}}));
}

struct EvidenceTest : testing::Test {
  EvidenceTest() {
    logs.emplace(std::move(*LogDirectory::CreateTemporary("job")));
    for (int attempt : {0, 1}) {
      for (int rank : {0, 1}) EXPECT_TRUE(MakeFolders(logs->WorkerFolder(attempt, rank)));
    }
    for (int rank = 0; rank < 2; ++rank) {
      WorkerRecord worker;
      worker.global_rank = worker.local_rank = rank;
      worker.exit = ProcessExit{.signaled = false, .value = 1};
      record.workers.push_back(worker);
    }
    record.attempt = 1;
    record.cause = 1;
  }

  void Complete() { CompleteWith(&*logs); }
  void CompleteWith(const LogDirectory* directory) {
    auto done = [this](AttemptRecord made) {
      calls += 1;
      complete = std::move(made);
    };
    evidence.Complete(directory, record, done);
    EXPECT_EQ(calls, 0) << "called inside the call";
    ASSERT_TRUE(loop.RunUntil([this] { return calls > 0; }, test::kLong));
  }

  test::TempFolder folder;
  test::ScopedVariable tmpdir{"TMPDIR", folder.path().c_str()};
  std::optional<LogDirectory> logs;
  Loop loop;
  Evidence evidence{loop, folder.path()};
  AttemptRecord record;
  AttemptRecord complete;
  int calls = 0;
};

TEST_F(EvidenceTest, ReadsTheExceptionOfEachWorker) {
  std::ofstream(logs->ErrorFile(1, 1)) << R"({"message": "ValueError: no"})";
  std::ofstream(logs->ErrorFile(0, 0)) << R"({"message": "of an earlier attempt"})";
  Complete();
  EXPECT_EQ(complete.workers[0].exception, std::nullopt);
  EXPECT_EQ(complete.workers[1].exception, "ValueError: no");
  EXPECT_EQ(complete.cause, 1u);
}

TEST_F(EvidenceTest, SavesTheTailOfStandardErrorIfThereIsOne) {
  record.workers[1].stderr_tail = "last words\n";
  Complete();
  EXPECT_EQ(complete.workers[0].stderr_file, "");
  EXPECT_EQ(complete.workers[1].stderr_file, logs->StderrFile(1, 1));
  EXPECT_EQ(test::ReadWholeFile(logs->StderrFile(1, 1)), "last words\n");
  EXPECT_EQ(complete.workers[1].stderr_tail, "last words\n");
  EXPECT_FALSE(std::filesystem::exists(logs->StderrFile(1, 0)));
}

TEST_F(EvidenceTest, SavesTheStacksOfAWorkerThatHasSome) {
  record.workers[0].stacks = {.frames = {"main (a.py:3)"}, .text = "pid 7\n"};
  Complete();
  EXPECT_EQ(complete.workers[0].stacks.file, logs->StacksFile(1, 0));
  EXPECT_EQ(complete.workers[0].stacks.text, "");
  EXPECT_EQ(test::ReadWholeFile(logs->StacksFile(1, 0)), "pid 7\n");
  EXPECT_EQ(complete.workers[1].stacks, WorkerStacks{});
}

TEST_F(EvidenceTest, AnOuterLauncherGetsTheErrorFileOfTheCause) {
  std::ofstream(logs->ErrorFile(1, 0)) << R"({"message": {"message": "E: consequence"}})";
  std::ofstream(logs->ErrorFile(1, 1)) << R"({"message": {"message": "E: cause"}})";
  record.workers[1].exit = ProcessExit{.signaled = true, .value = SIGABRT};
  record.parent_error_file = folder.Path("parent.json");
  Complete();
  EXPECT_EQ(test::ReadWholeFile(record.parent_error_file),
            R"({"message":{"errorCode":-6,"message":"E: cause"}})");
}

// At a path that the user has chosen, all attempts write their dumps.
TEST_F(EvidenceTest, ReadsADumpOfThisAttemptOnly) {
  record.lasted = milliseconds(10'100);
  for (size_t i = 0; i < 2; ++i) {
    const std::string path = folder.Path("dump_" + std::to_string(i));
    WriteDump(path);
    const auto age = i == 0 ? milliseconds(10'900) : milliseconds(5'000);
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - age);
    record.workers[i].dump_files = {path};
  }
  Complete();
  EXPECT_TRUE(complete.workers[0].calls.empty()) << "of the attempt before";
  EXPECT_EQ(complete.workers[1].calls.size(), 1U);
}

TEST_F(EvidenceTest, WithoutAFolderTheRecordStaysAsItIs) {
  record.workers[0].stderr_tail = "words\n";
  CompleteWith(nullptr);
  EXPECT_EQ(complete.workers.size(), 2u);
  EXPECT_EQ(complete.workers[0].stderr_tail, "words\n");
  EXPECT_EQ(complete.workers[0].stderr_file, "");
}

TEST_F(EvidenceTest, ARemovedFolderIsIgnored) {
  record.workers[0].stderr_tail = "words\n";
  std::filesystem::remove_all(logs->path());
  Complete();
  EXPECT_EQ(complete.workers.size(), 2u);
}

TEST_F(EvidenceTest, ReportsThatTheKernelRanOutOfMemory) {
  record.workers[0].exit = ProcessExit{.signaled = true, .value = SIGKILL};
  record.memory_before = MemoryEvents{.oom_kills = 1, .of_cgroup = true, .limit = {}};
  folder.Write("proc/self/cgroup", "0::/\n");
  folder.Write("sys/fs/cgroup/memory.events", "oom_kill 2\n");
  Complete();
  EXPECT_EQ(complete.workers[0].kill_note, "the kernel's OOM killer was at work in this cgroup");
  EXPECT_EQ(complete.workers[1].kill_note, "");
}

// Returns a page as a worker leaves it after three calls.
std::shared_ptr<const StatusPage> PageOfCalls() {
  auto page = std::make_shared<StatusPage>(*StatusPage::Create());
  Activity activity(page.get(), "world", 2);
  for (uint64_t number = 1; number <= 3; ++number) {
    activity.Enter({.kind = 1, .number = number, .count = 4});
    activity.Complete();
  }
  return page;
}

TEST_F(EvidenceTest, TheOperationsOfEachWorkerAreSaved) {
  for (WorkerRecord& worker : record.workers) {
    worker.status_page = PageOfCalls();
    worker.noted_ticks = Ticks();
  }
  Complete();
  for (const WorkerRecord& worker : complete.workers) {
    EXPECT_EQ(worker.operations_file, logs->OperationsFile(1, worker.local_rank));
    EXPECT_THAT(test::ReadWholeFile(worker.operations_file), testing::HasSubstr("AllReduce"));
    EXPECT_EQ(worker.status_page, nullptr);
  }
  // Shows those of the cause; the other worker was in no operation.
  ASSERT_EQ(complete.workers[1].last_operations.size(), 3u);
  EXPECT_EQ(complete.workers[1].last_operations[2].what, "AllReduce #3 (4 x float32, sum)");
  EXPECT_TRUE(complete.workers[0].last_operations.empty());
}

TEST_F(EvidenceTest, OneWorkerInAnOperationIsShownBesideTheCause) {
  record.workers.push_back(record.workers[0]);
  for (WorkerRecord& worker : record.workers) {
    worker.status_page = PageOfCalls();
    worker.noted_ticks = Ticks();
  }
  record.workers[0].activity.what = record.workers[2].activity.what = "in AllReduce #4";
  CompleteWith(nullptr);  // memory needs no folder
  EXPECT_EQ(complete.workers[0].last_operations.size(), 3u);
  EXPECT_EQ(complete.workers[1].last_operations.size(), 3u);
  EXPECT_TRUE(complete.workers[2].last_operations.empty());
  EXPECT_EQ(complete.workers[1].operations_file, "");
}

TEST_F(EvidenceTest, AWorkerWithoutOperationsHasNoFile) {
  record.workers[0].status_page = std::make_shared<StatusPage>(*StatusPage::Create());
  Complete();
  EXPECT_EQ(complete.workers[0].operations_file, "");
  EXPECT_FALSE(std::filesystem::exists(logs->OperationsFile(1, 0)));
}

TEST_F(EvidenceTest, ATailThatCannotBeSavedHasNoFile) {
  record.workers[0].stderr_tail = "words\n";
  std::filesystem::create_directory(logs->StderrFile(1, 0));
  Complete();
  EXPECT_EQ(complete.workers[0].stderr_file, "");
  EXPECT_EQ(complete.workers[0].stderr_tail, "words\n");
}

TEST_F(EvidenceTest, TheFileOfATailIsForTheUserAlone) {
  record.workers[1].stderr_tail = "last words\n";
  mode_t before = umask(022);
  Complete();
  umask(before);
  struct stat status;
  ASSERT_EQ(stat(logs->StderrFile(1, 1).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(EvidenceTest, ALinkThatAWorkerPlantedIsNotFollowed) {
  std::string target = folder.Write("target", "precious");
  std::filesystem::create_symlink(target, logs->StderrFile(1, 1));
  record.workers[1].stderr_tail = "last words\n";
  Complete();
  EXPECT_EQ(complete.workers[1].stderr_file, "");
  EXPECT_EQ(test::ReadWholeFile(target), "precious");
}

TEST_F(EvidenceTest, AnErrorFileThatIsAPipeIsIgnored) {
  ASSERT_EQ(mkfifo(logs->ErrorFile(1, 0).c_str(), 0600), 0);
  record.workers[1].stderr_tail = "words\n";
  Complete();
  EXPECT_EQ(complete.workers[0].exception, std::nullopt);
  EXPECT_EQ(complete.workers[1].stderr_file, logs->StderrFile(1, 1)) << "the pipe blocked the rest";
}

// Opening a pipe without a writer hangs, as does a file on a dead server.
TEST_F(EvidenceTest, AFileThatHangsDelaysTheRecordByOneSecondAndTheCauseNotAtAll) {
  std::filesystem::create_directories(folder.Path("proc/self"));
  std::string hangs = folder.Path("proc/self/cgroup");
  ASSERT_EQ(mkfifo(hangs.c_str(), 0600), 0);
  std::ofstream(logs->ErrorFile(1, 1)) << R"({"message": {"message": "E: cause"}})";
  record.parent_error_file = folder.Path("parent.json");
  record.workers[1].stderr_tail = "words\n";
  TimePoint begin = std::chrono::steady_clock::now();
  Complete();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, seconds(1));
  EXPECT_EQ(complete.workers[1].exception, "E: cause");
  EXPECT_EQ(complete.workers[1].stderr_tail, "words\n");
  EXPECT_EQ(test::ReadWholeFile(logs->StderrFile(1, 1)), "words\n");
  EXPECT_TRUE(std::filesystem::exists(record.parent_error_file));

  // Further records need no thread of the pool meanwhile.
  for (int i = 0; i < 8; ++i) {
    calls = 0;
    Complete();
  }
  bool ran = false;
  RunInPool(
      loop, [] {}, [&] { ran = true; });
  EXPECT_TRUE(loop.RunUntil([&] { return ran; }, test::kLong));
  { Fd release(open(hangs.c_str(), O_WRONLY | O_CLOEXEC)); }
  EXPECT_FALSE(loop.RunUntil([this] { return calls > 1; }, milliseconds(50)));
}

}  // namespace
}  // namespace rankrun::agent

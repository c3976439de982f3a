#include "store/clients/file_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

#include "store/clients/file_log.h"
#include "tests/base/support.h"

namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using test::kLong;
using test::ReadWholeFile;
using testing::AllOf;
using testing::HasSubstr;

using Keys = std::vector<std::string>;

off_t SizeOf(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_size : -1;
}

void Kill(pid_t child) {
  kill(child, SIGKILL);
  EXPECT_EQ(test::WaitForExit(child), (ProcessExit{true, SIGKILL}));
}

struct FileStoreTest : testing::Test {
  std::unique_ptr<FileStore> Open(const FileStoreOptions& options = {}) {
    auto store = FileStore::Open(path, "run 7", options);
    EXPECT_TRUE(store) << store.error().message;
    return store ? std::move(*store) : nullptr;
  }
  Error ErrorOfOpen(const std::string& where) {
    auto store = FileStore::Open(where, "run 7");
    EXPECT_FALSE(store) << where;
    return store ? Error{} : store.error();
  }

  test::TempFolder folder;
  std::string path = folder.Path("store");
};

TEST_F(FileStoreTest, CreatesTheFileForItsOwnerOnly) {
  auto store = Open();
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0077, 0U);
  EXPECT_EQ(ReadWholeFile(path), EncodeHeader("run 7"));
  EXPECT_EQ(*store->NumKeys(), 0);
}

TEST_F(FileStoreTest, TakesAnEmptyFile) {
  folder.Write("store", "");
  EXPECT_TRUE(Open()->Set("k", "v"));
  EXPECT_EQ(*Open()->Get("k", 0ms), "v");
}

TEST_F(FileStoreTest, ALaterProcessFindsTheKeysOfTheRun) {
  ASSERT_TRUE(Open()->Set("k", "v"));
  ASSERT_TRUE(Open()->QueuePush("q", "item"));
  EXPECT_EQ(*Open()->Get("k", 0ms), "v");
  EXPECT_EQ(*Open()->QueuePop("q", 0ms), "item");
  EXPECT_EQ(*Open()->QueueLength("q"), 0);
}

TEST_F(FileStoreTest, ExplainsAFileOfAnotherRun) {
  ASSERT_TRUE((*FileStore::Open(path, "run 6"))->Set("k", "v"));
  std::string before = ReadWholeFile(path);
  namespace fs = std::filesystem;
  fs::last_write_time(path, fs::file_time_type::clock::now() - 150s);
  Error error = ErrorOfOpen(path);
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_EQ(error.message,
            "store file " + path +
                ": it belongs to run \"run 6\", not to this run, \"run 7\": an earlier job "
                "left it, or another job is using it; last written 2 min ago; remove it if that "
                "job is over, else choose another path");
  EXPECT_EQ(ReadWholeFile(path), before);
}

TEST_F(FileStoreTest, DoesNotChangeAFileThatIsNotAStore) {
  for (std::string text : {"r", "rankrun-store", "#!/bin/sh\necho precious\n"}) {
    folder.Write("store", text);
    Error error = ErrorOfOpen(path);
    EXPECT_EQ(error.code, ErrorCode::kInvalid);
    EXPECT_THAT(error.message, AllOf(HasSubstr(path), HasSubstr("not a store")));
    EXPECT_EQ(ReadWholeFile(path), text);
  }
}

TEST_F(FileStoreTest, ExplainsWhyTheFileCannotBeOpened) {
  EXPECT_EQ(ErrorOfOpen(folder.Path("absent/store")).code, ErrorCode::kNotFound);
  EXPECT_THAT(ErrorOfOpen(folder.path()).message, HasSubstr("Is a directory"));
  EXPECT_THAT(ErrorOfOpen("/dev/full").message, HasSubstr("not a regular file"));
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(ErrorOfOpen(path).message, HasSubstr("not a regular file"));
  auto long_id = FileStore::Open(folder.Path("new"), std::string(5000, 'r'));
  ASSERT_FALSE(long_id);
  EXPECT_EQ(SizeOf(folder.Path("new")), -1);
}

TEST_F(FileStoreTest, ReportsThatTheFolderIsNotWritable) {
  if (geteuid() == 0) {  // root may write anywhere, but not in /proc
    EXPECT_THAT(ErrorOfOpen("/proc/store").message, HasSubstr("store file /proc/store: "));
    return;
  }
  ASSERT_EQ(chmod(folder.path().c_str(), 0500), 0);
  EXPECT_THAT(ErrorOfOpen(path).message, HasSubstr(": Permission denied"));
  ASSERT_EQ(chmod(folder.path().c_str(), 0700), 0);
}

TEST_F(FileStoreTest, AnIncompleteHeaderIsRewritten) {
  folder.Write("store", EncodeHeader("run 6").substr(0, 22));
  EXPECT_TRUE(Open()->Set("k", "v"));
  EXPECT_EQ(*Open()->Get("k", 0ms), "v");
}

TEST_F(FileStoreTest, AnIncompleteRecordIsRemovedWhereverItEnds) {
  std::string whole = EncodeHeader("run 7") + *EncodeRecord({Change::Kind::kSet, "a", "1"});
  std::string torn = *EncodeRecord({Change::Kind::kSet, "b", "2"});
  for (size_t size = 1; size < torn.size(); ++size) {
    folder.Write("store", whole + torn.substr(0, size));
    auto store = Open();
    EXPECT_EQ(ReadWholeFile(path), whole);
    EXPECT_EQ(*store->ListKeys(), Keys{"a"});
    ASSERT_TRUE(store->Set("b", "3"));
    EXPECT_EQ(*Open()->MultiGet(Keys{"a", "b"}, 0ms), (Keys{"1", "3"}));
  }
}

TEST_F(FileStoreTest, AnOpenReaderRemovesAnIncompleteRecord) {
  auto store = Open();
  off_t before = SizeOf(path);
  std::ofstream(path, std::ios::app) << EncodeRecord({Change::Kind::kSet, "b", "2"})->substr(0, 9);
  EXPECT_FALSE(store->Get("b", 0ms));
  EXPECT_EQ(SizeOf(path), before);
}

TEST_F(FileStoreTest, ADamagedFileIsAnErrorAndStaysUnchanged) {
  ASSERT_TRUE(Open()->Set("key", "value"));
  std::string bytes = ReadWholeFile(path);
  bytes.back() ^= 1;
  folder.Write("store", bytes);
  Error error = ErrorOfOpen(path);
  EXPECT_EQ(error.code, ErrorCode::kProtocol);
  EXPECT_THAT(error.message, HasSubstr("damaged at byte 25"));
  EXPECT_EQ(ReadWholeFile(path), bytes);
}

TEST_F(FileStoreTest, DetectsThatItsFileWasRemovedOrReplaced) {
  auto store = Open();
  ASSERT_TRUE(store->Set("k", "v"));
  ASSERT_EQ(unlink(path.c_str()), 0);
  auto removed = store->Set("k", "w");
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, ErrorCode::kPeerLost);
  EXPECT_THAT(removed.error().message, HasSubstr(path + ": it was removed while in use"));
  auto second = Open();
  auto replaced = store->Get("k", kLong);
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(*second->NumKeys(), 0);
}

TEST_F(FileStoreTest, AWaitEndsWhenTheFileIsRemoved) {
  auto store = Open();
  std::optional<Error> error;
  std::thread waiter([&] { error = store->Wait(Keys{"k"}, kLong).error(); });
  ASSERT_EQ(unlink(path.c_str()), 0);
  waiter.join();
  EXPECT_EQ(error->code, ErrorCode::kPeerLost);
}

TEST_F(FileStoreTest, DetectsThatItsFileHasBecomeShorter) {
  auto store = Open();
  ASSERT_TRUE(store->Set("k", "v"));
  ASSERT_EQ(truncate(path.c_str(), 3), 0);
  auto set = store->Set("k", "w");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kProtocol);
}

TEST_F(FileStoreTest, NobodyWaitsForeverForALockThatIsHeld) {
  auto store = Open({.lock_timeout = 30ms});
  ASSERT_TRUE(store->Set("k", "v"));
  auto lock = FileLock::Acquire(Fd(open(path.c_str(), O_RDWR | O_CLOEXEC)), {});
  ASSERT_TRUE(lock);
  auto set = store->Set("k", "w");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(set.error().message, AllOf(HasSubstr(path), HasSubstr("held the lock")));
  EXPECT_EQ(*store->Get("k", 0ms), "v");  // nothing new to read, so no lock is needed
  EXPECT_EQ(store->Get("absent", 20ms).error().code, ErrorCode::kTimeout);
}

TEST_F(FileStoreTest, KillingAStoppedHolderReleasesTheLock) {
  auto store = Open();
  test::Pipe locked = test::MakePipe();
  pid_t child = test::Fork([&] {
    auto lock = FileLock::Acquire(Fd(open(path.c_str(), O_RDWR | O_CLOEXEC)), {});
    if (!lock || write(locked.write_end.get(), "x", 1) != 1) return 1;
    for (;;) pause();
  });
  char byte = 0;
  ASSERT_EQ(read(locked.read_end.get(), &byte, 1), 1);
  std::thread writer([&] { EXPECT_TRUE(store->Set("k", "v")); });
  Kill(child);
  writer.join();
  EXPECT_EQ(*store->Get("k", 0ms), "v");
}

// Limits the size of files to just less than `write` needs; returns its exit
// code. A write up to the limit succeeds in part, as on a full disk.
TEST_F(FileStoreTest, AChangeThatDoesNotFitIsRolledBack) {
  auto store = Open();
  ASSERT_TRUE(store->Set("k", "before"));
  off_t before = SizeOf(path);
  pid_t child = test::Fork([&] {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{static_cast<rlim_t>(before) + 5000, static_cast<rlim_t>(before) + 5000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    auto set = store->Set("k", std::string(10'000, 'x'));
    if (set || set.error().message.find("write: File too large") == std::string::npos) return 2;
    if (SizeOf(path) != before) return 3;
    if (store->MultiSet(Keys{"k", "l"}, Keys{"small", std::string(10'000, 'x')})) return 4;
    return *store->Get("k", 0ms) == "before" && store->Set("l", "fits") ? 0 : 5;
  });
  EXPECT_EQ(test::WaitForExit(child), (ProcessExit{false, 0}));
  EXPECT_EQ(*store->MultiGet(Keys{"k", "l"}, 0ms), (Keys{"before", "fits"}));
}

constexpr int kNoRight = 77;

bool WriteText(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return bool(file);
}

// Mounts a small file system that is visible to this process only.
bool MountSmallDisk(const std::string& folder) {
  std::string user = "0 " + std::to_string(geteuid()) + " 1";
  std::string group = "0 " + std::to_string(getegid()) + " 1";
  return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && WriteText("/proc/self/setgroups", "deny") &&
         WriteText("/proc/self/uid_map", user) && WriteText("/proc/self/gid_map", group) &&
         mount("none", folder.c_str(), "tmpfs", 0, "size=64k") == 0;
}

int FillASmallDisk(const std::string& folder) {
  if (!MountSmallDisk(folder)) return kNoRight;
  auto store = FileStore::Open(folder + "/store", "run");
  if (!store || !(*store)->Set("k", "v")) return 1;
  off_t before = SizeOf(folder + "/store");
  auto set = (*store)->Set("k", std::string(100'000, 'x'));
  if (set || set.error().message.find("No space left") == std::string::npos) return 2;
  if (SizeOf(folder + "/store") != before) return 3;
  return (*store)->Set("l", "w") && *(*store)->Get("k", 0ms) == "v" ? 0 : 4;
}

TEST_F(FileStoreTest, AFullDiskIsAnErrorAndTheStoreStaysUsable) {
  pid_t child = test::Fork([&] { return FillASmallDisk(folder.path()); });
  ProcessExit exit = test::WaitForExit(child);
  if (exit.value == kNoRight) GTEST_SKIP() << "no right to mount a small file system";
  EXPECT_EQ(exit, (ProcessExit{false, 0}));
}

// Writes until it is killed. Reports each complete write on `report_fd`.
int WriteForever(Store& store, int report_fd) {
  std::string large(1'000'000, 'x');
  for (;;) {
    auto sum = store.Add("n", 1);
    if (!sum || !store.Set("large", large)) return 1;
    if (write(report_fd, &*sum, sizeof *sum) != sizeof *sum) return 2;
  }
}

// Returns the last report of WriteForever; `before` if there is none.
int64_t LastReported(int fd, int64_t before) {
  std::string reports = test::ReadToEnd(fd);
  if (reports.size() < sizeof before) return before;
  reports.copy(reinterpret_cast<char*>(&before), sizeof before, reports.size() - sizeof before);
  return before;
}

TEST_F(FileStoreTest, SurvivesWritersKilledAtAnyMoment) {
  auto store = Open();
  std::mt19937 random(7);
  std::uniform_int_distribution<off_t> growth(1, 1'500'000);
  ASSERT_EQ(*store->Add("n", 0), 0);
  int64_t count = 0;
  int torn = 0;
  // On a busy machine a record may be complete before this process runs again.
  for (int round = 0; round < 50 || (torn == 0 && round < 500); ++round) {
    test::Pipe report = test::MakePipe();
    pid_t child = test::Fork([&] { return WriteForever(*store, report.write_end.get()); });
    report.write_end.Reset();
    // The file grows while a record is written, so this kill is nearly always
    // in the middle of a record.
    off_t enough = SizeOf(path) + growth(random);
    while (SizeOf(path) < enough) std::this_thread::yield();
    Kill(child);
    int64_t last_reported = LastReported(report.read_end.get(), count);
    off_t size = SizeOf(path);
    auto now = store->Add("n", 0);
    ASSERT_TRUE(now) << now.error().message;
    if (SizeOf(path) < size) ++torn;
    EXPECT_GE(*now, last_reported);      // completed writes are kept
    EXPECT_LE(*now, last_reported + 1);  // and at most one more was in progress
    count = *now;
    EXPECT_TRUE(store->Set("round", std::to_string(round)));
  }
  EXPECT_EQ(*Open()->Get("n", 0ms), std::to_string(count));
  RecordProperty("torn", torn);
  EXPECT_GT(torn, 0);
}

TEST_F(FileStoreTest, WorksInMemoryFileSystems) {
  char shm[] = "/dev/shm/rankrun-test-XXXXXX";
  if (mkdtemp(shm) == nullptr) GTEST_SKIP() << "no /dev/shm";
  {
    auto store = FileStore::Open(std::string(shm) + "/store", "run");
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE((*store)->Set("k", "v"));
    EXPECT_EQ(*(*FileStore::Open(std::string(shm) + "/store", "run"))->Get("k", 0ms), "v");
  }
  std::filesystem::remove_all(shm);
}

}  // namespace
}  // namespace rankrun::store

#include "agent/report/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_poll.h"
#include "base/uv/uv_work.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct EventFileTest : testing::Test {
  EventFileTest() { signal(SIGPIPE, SIG_IGN); }

  void Open(const std::string& where) {
    path = where;
    auto opened = EventFile::Open(
        loop, path,
        {.on_failure = [this](const std::string& what) { failures.push_back(what); },
         .on_progress = [this] { batches += 1; }});
    ASSERT_TRUE(opened) << opened.error().message;
    file = std::move(*opened);
  }
  void Finish() {
    ASSERT_TRUE(loop.RunUntil([this] { return file->idle(); }, test::kLong));
  }
  static std::string RefusalOf(const std::string& path) {
    Loop other;
    auto opened = EventFile::Open(other, path, {});
    return opened ? "not refused" : opened.error().message;
  }
  // Returns the bytes that are in a pipe now.
  static std::string Drain(const Fd& fd) {
    std::string text(1024 * 1024, '\0');
    pollfd wait{fd.get(), POLLIN, 0};
    if (poll(&wait, 1, 0) <= 0) return "";
    ssize_t count = read(fd.get(), text.data(), text.size());
    return text.substr(0, count > 0 ? static_cast<size_t>(count) : 0);
  }

  test::TempFolder folder;
  Loop loop;
  std::string path;
  std::unique_ptr<EventFile> file;
  std::vector<std::string> failures;
  int batches = 0;
};

TEST_F(EventFileTest, LinesAreAppendedInOrder) {
  Open(folder.Write("events", "of another job\n"));
  for (int i = 0; i < 100; ++i) file->Write(std::to_string(i) + "\n");
  Finish();
  std::string text = test::ReadWholeFile(path);
  EXPECT_TRUE(text.starts_with("of another job\n0\n1\n2\n")) << text;
  EXPECT_TRUE(text.ends_with("98\n99\n")) << text;
  EXPECT_GE(batches, 1);
  EXPECT_THAT(failures, ElementsAre());
}

TEST_F(EventFileTest, ANewFileIsForTheUserAlone) {
  mode_t before = umask(022);
  Open(folder.Path("new"));
  umask(before);
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(EventFileTest, LinesOfTwoWritersAreNotTorn) {
  Open(folder.Path("events"));
  auto other = EventFile::Open(loop, path, {.on_failure = nullptr, .on_progress = [] {}});
  ASSERT_TRUE(other);
  std::string a(5000, 'a');
  std::string b(5000, 'b');
  for (int i = 0; i < 50; ++i) {
    file->Write(a + "\n");
    (*other)->Write(b + "\n");
  }
  Finish();
  ASSERT_TRUE(loop.RunUntil([&] { return (*other)->idle(); }, test::kLong));
  std::istringstream text(test::ReadWholeFile(path));
  int lines = 0;
  for (std::string line; std::getline(text, line); ++lines) EXPECT_TRUE(line == a || line == b);
  EXPECT_EQ(lines, 100);
}

TEST_F(EventFileTest, AFileThatCannotBeOpenedIsRefusedWithTheReason) {
  EXPECT_EQ(RefusalOf("-"),
            "--events -: want a file; --event-log-handler console writes events to standard error");
  EXPECT_EQ(RefusalOf("/no/such/file"), "--events /no/such/file: No such file or directory");
  EXPECT_EQ(RefusalOf("/"), "--events /: Is a directory");
  EXPECT_EQ(RefusalOf("/dev/fd/999"), "--events /dev/fd/999: No such file or directory");
  Fd ours(open("/dev/null", O_WRONLY | O_CLOEXEC));
  for (std::string name : {"/dev/fd/", "/proc/self/fd/"}) {
    name += std::to_string(ours.get());
    EXPECT_EQ(RefusalOf(name), "--events " + name + ": want a descriptor that rankrun inherits");
  }
}

TEST_F(EventFileTest, AFullDiskIsReportedOnceAndLinesAreCounted) {
  Open("/dev/full");
  file->Write("one\n");
  Finish();
  file->Write("two\n");
  file->Write("three\n");
  Finish();
  EXPECT_THAT(failures, ElementsAre("--events /dev/full: lines are lost: No space left on device"));
  EXPECT_EQ(file->TakeLoss(), 0u) << "writing still fails";
}

TEST_F(EventFileTest, ARemovedFileIsReportedOnce) {
  Open(folder.Path("events"));
  ASSERT_EQ(unlink(path.c_str()), 0);
  file->Write("one\n");
  Finish();
  file->Write("two\n");
  Finish();
  EXPECT_THAT(failures,
              ElementsAre("--events " + path + ": the file was removed together with its lines"));
}

TEST_F(EventFileTest, AFileThatNeverHadANameIsNotRemoved) {
  Fd memory(memfd_create("events", 0));
  Open("/dev/fd/" + std::to_string(memory.get()));
  file->Write("one\n");
  file->Write("two\n");
  Finish();
  EXPECT_THAT(failures, ElementsAre());
  char text[16] = {};
  EXPECT_EQ(pread(memory.get(), text, sizeof text, 0), 8);
  EXPECT_STREQ(text, "one\ntwo\n");
}

TEST_F(EventFileTest, ANamedPipeWaitsForItsReader) {
  ASSERT_EQ(mkfifo(folder.Path("pipe").c_str(), 0600), 0);
  Open(folder.Path("pipe"));
  file->Write("early\n");
  Finish();
  Fd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(Drain(reader), "early\n");
}

TEST_F(EventFileTest, AReaderThatDoesNotReadBlocksNothing) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  Open("/dev/fd/" + std::to_string(write_end.get()));
  std::string line(9'999, 'x');
  for (int i = 0; i < 200; ++i) file->Write(line + "\n");
  EXPECT_THAT(failures, ElementsAre(HasSubstr("no process reads it")));
  std::string text;
  auto reading = Poll::Open(loop, read_end.get(), [&] { text += Drain(read_end); });
  ASSERT_TRUE(reading);
  (*reading)->Start();
  Finish();
  text += Drain(read_end);
  EXPECT_EQ(text.size() % 10'000, 0u) << "a line was torn";
  size_t lost = file->TakeLoss();
  EXPECT_EQ(text.size() / 10'000 + lost, 200u);
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(file->TakeLoss(), 0u);
}

TEST_F(EventFileTest, AReaderThatLeavesIsReported) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Fd write_end(ends[1]);
  {
    Fd read_end(ends[0]);
    Open("/dev/fd/" + std::to_string(write_end.get()));
  }
  file->Write("one\n");
  Finish();
  EXPECT_THAT(failures, ElementsAre(HasSubstr(": lines are lost: Broken pipe")));
}

TEST_F(EventFileTest, APartOfALineIsEndedBeforeTheNext) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  Open(folder.Path("events"));
  rlimit small{10, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  file->Write("123456\n");
  file->Write("abcdef\n");  // cut after three bytes
  file->Write("dropped\n");
  Finish();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(failures, ElementsAre(HasSubstr("lines are lost: File too large")));
  file->Write("next\n");
  Finish();
  EXPECT_EQ(test::ReadWholeFile(path), "123456\nabc\nnext\n");
  EXPECT_EQ(file->TakeLoss(), 2u);
}

TEST_F(EventFileTest, ItMayEndWhileALineIsWritten) {
  Open(folder.Path("events"));
  file->Write("one\n");
  file.reset();
  EXPECT_TRUE(loop.RunUntil([this] { return !test::ReadWholeFile(path).empty(); }, test::kLong));
  bool is_behind = false;  // the write was in the pool before this job
  RunInPool(
      loop, [] {}, [&] { is_behind = true; });
  EXPECT_TRUE(loop.RunUntil([&] { return is_behind; }, test::kLong));
  EXPECT_EQ(batches, 0);
}

}  // namespace
}  // namespace rankrun::agent

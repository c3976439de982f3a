#include "agent/output/log_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <random>

#include "agent/output/file_sink.h"
#include "agent/output/log_writer.h"
#include "base/uv/uv_loop.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using std::chrono::seconds;

TEST(PlanRotationTest, EverythingFitsWithoutALimitOrBelowIt) {
  EXPECT_EQ(PlanRotation("abc", 1'000'000, 0, 0), (Rotation{3, 0}));
  EXPECT_EQ(PlanRotation("abc", 7, 10, 0), (Rotation{3, 0}));
  EXPECT_EQ(PlanRotation("abc", 7, 10, 7), (Rotation{3, 0}));
  EXPECT_EQ(PlanRotation("", 10, 10, 0), (Rotation{0, 0}));
}

TEST(PlanRotationTest, CutsBehindTheLastLineThatFits) {
  EXPECT_EQ(PlanRotation("a\nb\nlong", 4, 10, 0), (Rotation{4, 0}));
  EXPECT_EQ(PlanRotation("a\nb\nlong", 4, 10, 2), (Rotation{4, 0}));
}

TEST(PlanRotationTest, ALineThatDoesNotFitGoesIntoTheNextFile) {
  EXPECT_EQ(PlanRotation("abcdef\n", 4, 10, 0), (Rotation{0, 0}));
}

TEST(PlanRotationTest, TheBeginningOfALineMovesAlong) {
  EXPECT_EQ(PlanRotation("abcdef\n", 4, 10, 3), (Rotation{0, 3}));
  EXPECT_EQ(PlanRotation("abcdef\nmore", 4, 10, 3), (Rotation{0, 3}));
  EXPECT_EQ(PlanRotation("a", 10, 10, 9), (Rotation{0, 9}));
}

TEST(PlanRotationTest, ALineThatFitsIntoNoFileIsCut) {
  EXPECT_EQ(PlanRotation(std::string(25, 'x'), 4, 10, 0), (Rotation{6, 0}));
  EXPECT_EQ(PlanRotation(std::string(25, 'x'), 0, 10, 0), (Rotation{10, 0}));
  EXPECT_EQ(PlanRotation("abcdefgh", 6, 10, 3), (Rotation{4, 0}));
  EXPECT_EQ(PlanRotation("abc", 10, 10, 10), (Rotation{0, 0}))
      << "the whole file is the beginning of the line";
}

TEST(PlanRotationTest, ABeginningOfMoreThan64KiBStays) {
  EXPECT_EQ(PlanRotation("abcdef\n", 99'996, 100'000, 65'536), (Rotation{0, 65'536}));
  EXPECT_EQ(PlanRotation("abcdef\n", 99'996, 100'000, 65'537), (Rotation{4, 0}));
  EXPECT_EQ(PlanRotation("abcdef\n", 100'000, 100'000, 65'537), (Rotation{0, 0}));
}

struct LogFileTest : testing::Test {
  LogFileTest() { signal(SIGXFSZ, SIG_IGN); }
  std::string Text(const std::string& name = "log") {
    return test::ReadWholeFile(folder.Path(name));
  }

  test::TempFolder folder;
  TimePoint now{};
};

TEST_F(LogFileTest, IsThereFromTheFirstCallOnWithItsFolders) {
  LogFile file(folder.Path("a/b/log"));
  EXPECT_EQ(file.Write("", now), std::nullopt);
  EXPECT_TRUE(std::filesystem::exists(folder.Path("a/b/log")));
  EXPECT_EQ(file.Write("text", now), std::nullopt);
  EXPECT_EQ(Text("a/b/log"), "text");
}

TEST_F(LogFileTest, IsForTheUserAlone) {
  LogFile file(folder.Path("log"));
  EXPECT_EQ(file.Write("text", now), std::nullopt);
  struct stat status;
  ASSERT_EQ(stat(folder.Path("log").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(LogFileTest, DoesNotFollowALinkThatSomebodyPlanted) {
  std::string target = folder.Write("target", "precious");
  std::filesystem::create_symlink(target, folder.Path("log"));
  LogFile file(folder.Path("log"));
  EXPECT_NE(file.Write("text", now), std::nullopt);
  EXPECT_EQ(Text("target"), "precious");
}

TEST_F(LogFileTest, TruncatesAnExistingFile) {
  folder.Write("log", "old");
  LogFile file(folder.Path("log"));
  file.Write("new", now);
  EXPECT_EQ(Text(), "new");
}

TEST_F(LogFileTest, KeepsOnePredecessorOverItsLimit) {
  LogFile file(folder.Path("log"), 10);
  for (const char* line : {"one\n", "two\n", "three\n", "four\n"}) file.Write(line, now);
  EXPECT_EQ(Text("log.1"), "three\n");
  EXPECT_EQ(Text("log"), "four\n");
  file.Write("1\n2\n3\n4\n5\n6\n7\n8\n9\n", now);
  EXPECT_EQ(Text("log.1") + Text("log"), "3\n4\n5\n6\n7\n8\n9\n");
  EXPECT_LE(Text("log.1").size(), 10u);
}

TEST_F(LogFileTest, ALineInPiecesIsNotCut) {
  LogFile file(folder.Path("log"), 10);
  for (const char* piece : {"one\n", "two", "\nabc", "def", "gh\n"}) file.Write(piece, now);
  EXPECT_EQ(Text("log.1"), "one\ntwo\n");
  EXPECT_EQ(Text("log"), "abcdefgh\n");
}

TEST_F(LogFileTest, IsCutAtLinesHoweverTheyCome) {
  std::mt19937 random(1);
  auto below = [&](size_t end) { return random() % end; };
  for (int round = 0; round < 20; ++round) {
    size_t limit = 1 + below(60);
    std::string name = std::to_string(round);
    std::string all;
    while (all.size() < 1000)
      all += std::string(below(30), static_cast<char>('a' + below(26))) + "\n";
    LogFile file(folder.Path(name), limit);
    for (size_t written = 0; written < all.size();) {
      size_t count = std::min(1 + below(below(4) == 0 ? 100 : 8), all.size() - written);
      ASSERT_EQ(file.Write(all.substr(written, count), now), std::nullopt);
      written += count;
      std::string before = Text(name + ".1");
      std::string last = Text(name);
      ASSERT_LE(before.size(), limit);
      ASSERT_LE(last.size(), limit);
      ASSERT_TRUE(all.substr(0, written).ends_with(before + last)) << before << "|" << last;
      for (size_t size : {last.size(), before.size() + last.size()}) {
        size_t begin = written - size;
        size_t line = begin == 0 ? 0 : all.rfind('\n', begin - 1) + 1;
        size_t length = all.find('\n', begin) + 1 - line;
        ASSERT_TRUE(begin == line || length > limit) << "limit " << limit << ": " << last;
      }
    }
  }
}

TEST_F(LogFileTest, ALostBeginningOfALineIsCounted) {
  LogFile file(folder.Path("log"), 8);
  file.Write("one\nabc", now);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 2;
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_NE(file.Write("de\n", now), std::nullopt);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(Text("log.1"), "one\n");
  EXPECT_EQ(file.Write("", now + seconds(1)), std::nullopt);
  EXPECT_EQ(Text(), "ab\n[rankrun: 4 bytes are missing here]\n");
}

TEST_F(LogFileTest, ATruncatedFileIsRotatedWithoutTheBeginningOfALine) {
  LogFile file(folder.Path("log"), 8);
  file.Write("one\nabc", now);
  std::filesystem::resize_file(folder.Path("log"), 0);
  EXPECT_EQ(file.Write("de\n", now), std::nullopt);
  EXPECT_EQ(Text(), "de\n");
}

TEST_F(LogFileTest, AFullDiskIsReportedOnceAndRetried) {
  LogFile file(folder.Path("log"));
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 6;
  setrlimit(RLIMIT_FSIZE, &small);  // EFBIG, like a full disk
  EXPECT_EQ(file.Write("abc\ndefgh\n", now), "write to " + folder.Path("log") + ": File too large");
  EXPECT_EQ(file.Write("lost\n", now), std::nullopt);
  EXPECT_EQ(file.Write("lost\n", now + seconds(1)), std::nullopt) << "reported once";
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(file.Write("lost\n", now + seconds(1)), std::nullopt) << "not tried again yet";
  EXPECT_EQ(file.Write("back\n", now + seconds(2)), std::nullopt);
  EXPECT_EQ(Text(), "abc\nde\n[rankrun: 19 bytes are missing here]\nback\n");
}

TEST_F(LogFileTest, FinishRetriesAtOnceAndReportsTheLoss) {
  LogFile full(folder.Path("full"));
  LogFile freed(folder.Path("freed"));
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 4;
  setrlimit(RLIMIT_FSIZE, &small);
  for (LogFile* file : {&full, &freed}) EXPECT_NE(file->Write("abc\ndefgh\n", now), std::nullopt);
  EXPECT_EQ(full.Finish("12", now),
            "8 bytes of " + folder.Path("full") + " are lost: File too large");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(freed.Finish("", now), std::nullopt);
  EXPECT_EQ(Text("freed"), "abc\n[rankrun: 6 bytes are missing here]\n");
}

TEST_F(LogFileTest, AFileThatCannotBeCreatedIsRetried) {
  folder.Write("folder", "a file");
  LogFile file(folder.Path("folder/log"));
  EXPECT_THAT(file.Write("", now).value_or(""), testing::EndsWith(": Not a directory"));
  std::filesystem::remove(folder.Path("folder"));
  EXPECT_EQ(file.Write("text\n", now + seconds(1)), std::nullopt);
  EXPECT_EQ(Text("folder/log"), "text\n");
}

struct LogWriterTest : testing::Test {
  LogWriter::Entry* Open(const std::string& name) {
    return writer->Open(LogFile(folder.Path(name)), "rank 3");
  }
  void Finish() {
    ASSERT_TRUE(loop.RunUntil([this] { return writer->idle(); }, test::kLong));
  }
  std::string Text(const std::string& name) { return test::ReadWholeFile(folder.Path(name)); }

  test::TempFolder folder;
  Loop loop;
  int progress = 0;
  std::vector<std::string> troubles;
  std::vector<std::string> losses;
  std::optional<LogWriter> writer{
      std::in_place, loop,
      LogWriter::Callbacks{.on_progress = [this] { progress += 1; },
                           .on_trouble = [this](const std::string& t) { troubles.push_back(t); },
                           .on_loss = [this](const std::string& t) { losses.push_back(t); }}};
};

TEST_F(LogWriterTest, EachFileGetsItsBytesInOrder) {
  LogWriter::Entry* files[] = {Open("0"), Open("1"), Open("2")};
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    std::string line = std::to_string(i) + "\n";
    for (auto* file : files) writer->Write(file, line);
    expected += line;
    if (i % 100 == 0) loop.RunUntil([] { return true; }, seconds(1));
  }
  for (auto* file : files) writer->Close(file);
  Finish();
  for (const char* name : {"0", "1", "2"}) EXPECT_EQ(Text(name), expected);
  EXPECT_GT(progress, 0);
  EXPECT_TRUE(troubles.empty());
}

TEST_F(LogWriterTest, AFileIsThereBeforeAnythingIsWritten) {
  Open("empty");
  Finish();
  EXPECT_TRUE(std::filesystem::exists(folder.Path("empty")));
}

TEST_F(LogWriterTest, TroubleIsReportedOnceWithItsOwner) {
  folder.Write("folder", "a file");
  auto* file = Open("folder/log");
  Finish();
  writer->Write(file, "more");
  Finish();
  EXPECT_THAT(troubles, testing::ElementsAre(testing::StartsWith("rank 3: write to ")));
  EXPECT_TRUE(losses.empty());
  writer->Close(file);
  Finish();
  EXPECT_THAT(losses, testing::ElementsAre(testing::StartsWith("rank 3: 4 bytes of ")));
}

// A pipe without a reader behaves like a disk that hangs.
TEST_F(LogWriterTest, AFileThatHangsFillsUpAndLosesNothing) {
  ASSERT_EQ(mkfifo(folder.Path("fifo").c_str(), 0600), 0);
  auto* file = Open("fifo");
  size_t written = 0;
  while (!writer->full(file)) {
    writer->Write(file, std::string(100'000, 'x'));
    written += 100'000;
  }
  EXPECT_LE(written, 4u << 20);
  writer->Close(file);
  Fd reader(open(folder.Path("fifo").c_str(), O_RDONLY | O_CLOEXEC));
  std::thread reads([&] { EXPECT_EQ(test::ReadToEnd(reader.get()).size(), written); });
  Finish();
  reads.join();
}

TEST_F(LogWriterTest, MayEndWhileAWriteIsUnderWay) {
  writer->Write(Open("log"), "text");
  writer.reset();
  EXPECT_FALSE(loop.RunUntil([this] { return progress > 0; }, std::chrono::milliseconds(20)));
}

TEST_F(LogWriterTest, AFilterPassesLinesThatContainATextWithTheirPrefix) {
  auto* file = Open("filtered");
  FilterSink sink(*writer, file, {.texts = {"loss", "WARN"}, .prefix = "[default0]:"});
  sink.Write("loss=1\nother\nthe lo");
  sink.Write("ss\r\nWARNING loss\nno\nat the end loss");
  sink.Finish();
  Finish();
  EXPECT_EQ(Text("filtered"),
            "[default0]:loss=1\n[default0]:the loss\n[default0]:WARNING loss\n"
            "[default0]:at the end loss\n");
}

}  // namespace
}  // namespace rankrun::agent

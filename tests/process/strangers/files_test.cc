// Files that another user has planted where the programs write.

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/process/harness.h"
#include "tests/process/rankctl.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kStranger = 65534;

struct StrangersFilesTest : ::testing::Test {
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root makes files of other users";
    AdoptOrphans();
    ASSERT_EQ(mkdir(shared.c_str(), 0700), 0);
    ASSERT_EQ(chmod(shared.c_str(), 0777), 0);
    std::ofstream(victim) << "precious";
    ASSERT_EQ(chmod(victim.c_str(), 0640), 0);
  }

  std::string PlantLink(const std::string& name, const std::string& target) const {
    const std::string path = shared + "/" + name;
    EXPECT_EQ(symlink(target.c_str(), path.c_str()), 0);
    EXPECT_EQ(lchown(path.c_str(), kStranger, kStranger), 0);
    return path;
  }
  void ExpectVictimAsBefore() const {
    struct stat status {};
    EXPECT_EQ(stat(victim.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0640u);
    EXPECT_EQ(ReadText(victim), "precious");
  }
  void ExpectRefusal(const std::vector<std::string>& flags, const std::string& reason) const {
    Job job({.arguments = Shell(flags, "exit 0")});
    EXPECT_EQ(job.Wait(), Code(2));
    EXPECT_THAT(job.Err(), HasSubstr(reason));
    ExpectVictimAsBefore();
  }

  ScratchFolder folder;
  const std::string shared = folder.Path("shared");
  const std::string victim = folder.Path("victim");
};

TEST_F(StrangersFilesTest, EventsAreNotAppendedThroughALink) {
  ExpectRefusal({"--events", PlantLink("events", victim)}, "events is a link of user 65534");
}

TEST_F(StrangersFilesTest, EventsAreNotAppendedToAFile) {
  const std::string path = shared + "/events";
  std::ofstream(path) << "";
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  ASSERT_EQ(chown(path.c_str(), kStranger, kStranger), 0);
  ExpectRefusal({"--events", path}, path + ": belongs to user 65534, want a file of user 0");
}

TEST_F(StrangersFilesTest, TracesAreNotWrittenIntoAFolder) {
  const std::string path = shared + "/traces";
  ASSERT_EQ(mkdir(path.c_str(), 0777), 0);
  ASSERT_EQ(chown(path.c_str(), kStranger, kStranger), 0);
  ExpectRefusal({"--trace", path}, "--trace " + path + ": " + path + ": belongs to user 65534");
  ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
  std::filesystem::create_directory(path + "/run-7");
  ASSERT_EQ(chown((path + "/run-7").c_str(), kStranger, kStranger), 0);
  ExpectRefusal({"--trace", path, "--rdzv-id=run-7"}, "run-7: belongs to user 65534");
}

TEST_F(StrangersFilesTest, LogsAreNotWrittenThroughALink) {
  std::filesystem::create_directory(folder.Path("private"));
  const std::string link = PlantLink("logs", folder.Path("private"));
  ExpectRefusal({"--log-dir", link + "/deep"}, "logs is a link of user 65534");
  EXPECT_TRUE(std::filesystem::is_empty(folder.Path("private")));
}

TEST_F(StrangersFilesTest, APageIsNotWrittenThroughALink) {
  const std::string reports = folder.Path("reports");
  Job failing({.arguments = Shell({"--report-dir", reports}, "exit 3")});
  EXPECT_EQ(failing.Wait(), Code(3));
  const std::string page = shared + "/page.html";
  PlantLink("page.html.tmp", victim);
  auto write_page = [&] {
    return Job::Options{.arguments = {"report", "--report-dir", reports, "--html", page},
                        .program = kRankctl};
  };
  Job first(write_page());
  EXPECT_EQ(first.Wait(), Code(0)) << first.Err();
  EXPECT_THAT(ReadText(page), HasSubstr("<html"));
  ExpectVictimAsBefore();
  ASSERT_EQ(unlink(page.c_str()), 0);
  PlantLink("page.html", victim);
  Job second(write_page());
  EXPECT_EQ(second.Wait(), Code(1));
  EXPECT_THAT(second.Err(), HasSubstr("page.html is a link of user 65534"));
  ExpectVictimAsBefore();
}

}  // namespace
}  // namespace rankrun::testing

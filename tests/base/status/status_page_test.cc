#include "base/status/status_page.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/base/support.h"

namespace rankrun {
namespace {

using test::ScopedVariable;

struct StatusPageTest : testing::Test {
  StatusPageTest() : page(*StatusPage::Create()) {}

  // Returns the page that a worker with `fd` and `path` finds.
  static Result<StatusPage> Find(const std::string& fd, const std::string& path) {
    ScopedVariable fd_variable("RANKRUN_STATUS_FD", fd.c_str());
    ScopedVariable path_variable("RANKRUN_STATUS_PATH", path.c_str());
    return StatusPage::FromEnvironment();
  }
  Result<StatusPage> Find() { return Find(std::to_string(page.fd()), page.Path()); }

  StatusPageHeader& Header() { return const_cast<StatusPageHeader&>(page.header()); }

  void ExpectRefused(const std::string& why) {
    auto found = Find();
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(found.error().message, why);
  }

  StatusPage page;
};

constexpr const char* kNotOurs = "not the status page of this worker's agent";

TEST_F(StatusPageTest, ANewPageIdentifiesItsOwner) {
  struct stat status;
  ASSERT_EQ(fstat(page.fd(), &status), 0);
  EXPECT_EQ(page.header().magic, kStatusPageMagic);
  EXPECT_EQ(page.header().version, kStatusPageVersion);
  EXPECT_EQ(page.header().size_bytes, kStatusPageBytes);
  EXPECT_EQ(page.header().inode, status.st_ino);
  EXPECT_EQ(page.header().agent_pid, getpid());
  EXPECT_EQ(static_cast<size_t>(status.st_size), kStatusPageBytes + kFlightBytes);
  EXPECT_EQ(std::memcmp(&page.header().magic, "RRSTATE1", 8), 0);
  EXPECT_EQ(fcntl(page.fd(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(page.Path(), "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(page.fd()));
}

TEST_F(StatusPageTest, TheWorkersPageIsTheSameMemory) {
  auto found = Find();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_NE(&found->header(), &page.header());
  EXPECT_EQ(found->header().saving, 0u);
  Header().saving = 42;
  EXPECT_EQ(found->header().saving, 42u);
}

TEST_F(StatusPageTest, TheInheritedDescriptorStaysOpen) {
  {
    auto found = Find();
    ASSERT_TRUE(found);
    EXPECT_NE(found->fd(), page.fd());
  }
  EXPECT_TRUE(test::IsOpen(page.fd()));
}

TEST_F(StatusPageTest, AnotherProcessFindsItByItsPath) {
  std::string path = page.Path();
  pid_t child = test::Fork([&] { return Find("999999", path) ? 0 : 1; });
  EXPECT_EQ(test::WaitForExit(child), ProcessExit{});
}

TEST_F(StatusPageTest, SomethingElseAtTheDescriptorMeansThePath) {
  Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  auto found = Find(std::to_string(null.get()), page.Path());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->header().inode, page.header().inode);
}

TEST_F(StatusPageTest, AnotherAgentsPageAtTheDescriptorMeansThePath) {
  auto other = StatusPage::Create();
  ASSERT_TRUE(other);
  const_cast<StatusPageHeader&>(other->header()).agent_pid = 1;
  auto found = Find(std::to_string(other->fd()), page.Path());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->header().inode, page.header().inode);
}

TEST_F(StatusPageTest, WithoutTheVariablesThereIsNone) {
  ScopedVariable fd("RANKRUN_STATUS_FD", nullptr);
  ScopedVariable path("RANKRUN_STATUS_PATH", nullptr);
  auto found = StatusPage::FromEnvironment();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(found.error().message, "no status page: not started by rankrun");
}

TEST_F(StatusPageTest, APathThatIsGoneIsNotFound) {
  std::string path = "/proc/" + std::to_string(getpid()) + "/fd/987654";
  auto found = Find("987654", path);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
}

TEST_F(StatusPageTest, AWrongMagicIsRefused) {
  Header().magic += 1;
  ExpectRefused(kNotOurs);
}

TEST_F(StatusPageTest, ACopyIsRefusedByItsInode) {
  Header().inode += 1;
  ExpectRefused(kNotOurs);
}

TEST_F(StatusPageTest, AnotherAgentsPidIsRefused) {
  Header().agent_pid += 1;
  ExpectRefused(kNotOurs);
}

TEST_F(StatusPageTest, APathOfAnotherFormIsRefused) {
  test::TempFolder folder;
  std::string link = folder.Path("page");
  ASSERT_EQ(symlink(page.Path().c_str(), link.c_str()), 0);
  auto found = Find(std::to_string(page.fd()), link);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, kNotOurs);
}

TEST_F(StatusPageTest, AnotherVersionIsRefusedByName) {
  Header().version = 7;
  ExpectRefused("status page of version 7, want version 3: rankrun and librankrun differ");
}

TEST_F(StatusPageTest, AnotherSizeIsRefused) {
  Fd small(memfd_create("small", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(small.get(), 4096), 0);
  auto found = Find(std::to_string(small.get()),
                    "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(small.get()));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "not a status page: wrong size");
}

TEST_F(StatusPageTest, CannotBeResizedNorUnsealed) {
  EXPECT_NE(ftruncate(page.fd(), 0), 0);
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(ftruncate(page.fd(), 2 * (kStatusPageBytes + kFlightBytes)), 0);
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(fcntl(page.fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST_F(StatusPageTest, MovesWithItsMemory) {
  const StatusPageHeader* header = &page.header();
  int fd = page.fd();
  StatusPage moved(std::move(page));
  EXPECT_EQ(&moved.header(), header);
  EXPECT_EQ(moved.fd(), fd);
  auto other = StatusPage::Create();
  ASSERT_TRUE(other);
  int other_fd = other->fd();
  moved = std::move(*other);
  EXPECT_EQ(moved.fd(), other_fd);
  EXPECT_FALSE(test::IsOpen(fd));
  EXPECT_EQ(moved.header().magic, kStatusPageMagic);
}

constexpr const char* kWord = "rank 5 on node n3 was killed by SIGKILL";

TEST_F(StatusPageTest, AtFirstNobodyHasDied) {
  EXPECT_FALSE(page.has_peer_death());
  EXPECT_EQ(page.PeerDeathMessage(), "");
}

TEST_F(StatusPageTest, TheWorkerReadsThePeerDeathMessage) {
  auto found = Find();
  ASSERT_TRUE(found);
  page.PublishPeerDeath(kWord);
  EXPECT_TRUE(found->has_peer_death());
  EXPECT_EQ(found->PeerDeathMessage(), kWord);
}

TEST_F(StatusPageTest, TheFirstDeathStands) {
  page.PublishPeerDeath(kWord);
  page.PublishPeerDeath("rank 6 ended with exit code 1");
  EXPECT_EQ(page.PeerDeathMessage(), kWord);
}

TEST_F(StatusPageTest, ALongMessageIsCutBetweenCharacters) {
  page.PublishPeerDeath(std::string(kPeerDeathBytes - 1, 'x') + "é");
  EXPECT_EQ(page.PeerDeathMessage(), std::string(kPeerDeathBytes - 1, 'x'));
  auto other = StatusPage::Create();
  ASSERT_TRUE(other);
  other->PublishPeerDeath(std::string(1000, 'x'));
  EXPECT_EQ(other->PeerDeathMessage(), std::string(kPeerDeathBytes, 'x'));
}

TEST_F(StatusPageTest, AWriterThatDiedInTheMiddleHasPublishedNothing) {
  std::memset(Header().death_text, 'x', sizeof Header().death_text);
  EXPECT_FALSE(page.has_peer_death());
  EXPECT_EQ(page.PeerDeathMessage(), "");
}

TEST_F(StatusPageTest, AnOverwrittenMessageEndsWithItsRoom) {
  page.PublishPeerDeath(kWord);
  std::memset(Header().death_text, 'x', sizeof Header().death_text);
  EXPECT_EQ(page.PeerDeathMessage(), std::string(kPeerDeathBytes, 'x'));
}

TEST_F(StatusPageTest, NoReaderSeesHalfAMessage) {
  std::string word(kPeerDeathBytes, 'w');
  for (int turn = 0; turn < 50; ++turn) {
    auto shared = StatusPage::Create();
    ASSERT_TRUE(shared);
    std::atomic<bool> begun{false};
    std::thread reader([&] {
      begun = true;
      std::string seen;
      while (seen.empty()) seen = shared->PeerDeathMessage();
      EXPECT_EQ(seen, word);
    });
    while (!begun) std::this_thread::yield();
    shared->PublishPeerDeath(word);
    reader.join();
  }
}

TEST_F(StatusPageTest, ADeathWakesASleeperInAnotherProcess) {
  std::string path = page.Path();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t child = test::Fork([&] {
    auto found = Find("999999", path);
    if (!found || write(ready[1], "", 1) != 1) return 1;
    found->AwaitDeath(MonotonicClock().Now() + 2 * test::kLong);
    return found->PeerDeathMessage() == kWord ? 0 : 2;
  });
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  TimePoint told = MonotonicClock().Now();
  page.PublishPeerDeath(kWord);
  EXPECT_EQ(test::WaitForExit(child), ProcessExit{});
  EXPECT_LT(MonotonicClock().Now() - told, test::kLong);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(StatusPageTest, ASleepWithoutADeathHasItsEnd) {
  TimePoint until = MonotonicClock().Now() + std::chrono::milliseconds(20);
  page.AwaitDeath(until);
  EXPECT_GE(MonotonicClock().Now(), until);
}

TEST_F(StatusPageTest, IsClosedAtItsEnd) {
  int fd;
  {
    auto other = StatusPage::Create();
    ASSERT_TRUE(other);
    fd = other->fd();
  }
  EXPECT_FALSE(test::IsOpen(fd));
}

}  // namespace
}  // namespace rankrun

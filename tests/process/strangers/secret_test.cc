// Where the secret of a job is, and where it is not.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <sstream>

#include "tests/process/nodes.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kSecret = "hush-hush-never-tell-it";

std::string FileOf(pid_t pid, const std::string& name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

// Returns whether the memory that a core file would have contains the text.
bool MemoryHas(pid_t pid, const std::string& text) {
  Fd memory(open(FileOf(pid, "mem").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(memory);
  std::istringstream maps(ReadText(FileOf(pid, "maps")));
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char writable = '-';
    if (sscanf(line.c_str(), "%lx-%lx r%c", &begin, &end, &writable) != 3) continue;
    constexpr size_t kShadow = size_t{1} << 28;  // that of a sanitizer is larger
    const bool is_data = writable == 'w' && end - begin < kShadow;
    std::string bytes(is_data ? end - begin : 0, '\0');
    const ssize_t count =
        pread(memory.get(), bytes.data(), bytes.size(), static_cast<off_t>(begin));
    if (count > 0 && bytes.find(text) != std::string::npos) return true;
  }
  return false;
}

struct SecretMemoryTest : NodesTest {
  SecretMemoryTest() { job.emplace_back("--max-restarts=1"); }

  static constexpr const char* kSecondTimeLucky =
      "test $TORCHELASTIC_RESTART_COUNT = 1 && exit 0\nexec sleep 60";
};

TEST_F(SecretMemoryTest, OnlyTheAgentHasTheSecretOfTheVariable) {
  variables = {{"RANKRUN_SECRET", kSecret}};
  Job& node = StartHost({"-n1"}, Stamped("exec sleep 60"));
  StartGuest({"-n1"}, Stamped("exec sleep 60"));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  const pid_t agent = AgentOf(node);
  for (pid_t pid : {node.pid(), agent, ChildrenOf(agent).at(0)}) {
    EXPECT_THAT(ReadText(FileOf(pid, "environ")), Not(HasSubstr("hush"))) << pid;
  }
  EXPECT_TRUE(MemoryHas(agent, kSecret)) << "this test does not find it";
  EXPECT_FALSE(MemoryHas(node.pid(), kSecret));
  EXPECT_THAT(ReadText(FileOf(agent, "limits")), HasSubstr("Max core file size        1 "));
}

TEST_F(SecretMemoryTest, TheGuardianDoesNotReadTheSecretOfAFileAfterTheDeathOfAnAgent) {
  const std::string file = folder.Path("secret");
  Fd secret(open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_GT(write(secret.get(), kSecret.data(), kSecret.size()), 0);
  StartHost({"-n1", "--node-rank=0", "--secret-file=" + file}, Stamped(kSecondTimeLucky));
  Job& guest =
      StartGuest({"-n1", "--node-rank=1", "--secret-file=" + file}, Stamped(kSecondTimeLucky));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  ASSERT_EQ(unlink(file.c_str()), 0);
  guest.Signal(SIGSTOP);
  KillAgent(guest, SIGKILL);
  EXPECT_FALSE(MemoryHas(guest.pid(), kSecret));
  guest.Signal(SIGCONT);
  for (auto& node : nodes) EXPECT_EQ(node->Wait(), Code(0)) << Errors();
}

TEST_F(SecretMemoryTest, TheNextAgentHasTheSecretOfTheVariable) {
  variables = {{"RANKRUN_SECRET", kSecret}};
  Job& host = StartHost({"-n1", "--node-rank=0"}, Stamped(kSecondTimeLucky));
  StartGuest({"-n1", "--node-rank=1"}, Stamped(kSecondTimeLucky));
  ASSERT_TRUE(WaitForUp(2, 0)) << Errors();
  KillAgent(host, SIGKILL);
  for (auto& node : nodes) EXPECT_EQ(node->Wait(), Code(0)) << Errors();
}

}  // namespace
}  // namespace rankrun::testing

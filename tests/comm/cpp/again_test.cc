// A world that is made and destroyed many times leaves nothing behind: no
// memory, descriptors, threads, shared segments or keys.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/base/support.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

#ifdef RANKRUN_SANITIZED
constexpr int kManyWorlds = 200;  // sanitizers are ten times slower and keep freed memory
constexpr int64_t kRoomKiB = 64 * 1024;
#else
constexpr int kManyWorlds = 1000;
constexpr int64_t kRoomKiB = 1024;
#endif
constexpr int kSlowWorlds = 200;  // on Gloo, whose loop takes some 70 ms for each
constexpr int kFirst = 100;

int64_t FilesIn(const char* folder) {
  std::filesystem::directory_iterator files(folder);
  return std::distance(begin(files), end(files));
}

int64_t Threads() { return FilesIn("/proc/self/task"); }

int64_t ResidentKiB() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return -1;
}

// Returns the number of mapped segments; an open but unmapped one counts as a
// descriptor.
int64_t Segments() {
  std::ifstream maps("/proc/self/maps");
  int64_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("/memfd:rankrun-shm") != std::string::npos ? 1 : 0;
  }
  return count;
}

int64_t KeysOfTheStore() {
  auto port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")));
  return TcpStore({.port = port}).NumKeys();
}

// Returns "<KiB> <descriptors> <threads> <segments> <keys>".
std::string Measure() {
  std::ostringstream text;
  text << ResidentKiB() << ' ' << FilesIn("/proc/self/fd") << ' ' << Threads() << ' ' << Segments()
       << ' ' << KeysOfTheStore() << ' ';
  return text.str();
}

void WorkOnce(const char* backend) {
  std::vector<int64_t> one{1};
  Init({.backend = backend}).AllReduce(one);
  NewGroup({.ranks = {0, 1}}).AllReduce(one);
  if (one[0] != 4) throw DistError("the sum is " + std::to_string(one[0]));
  bool shares = std::string(backend) == "shm" || std::string(backend) == "hierarchical";
  if (shares != (Segments() > 0)) throw DistError("segments are not told from other memory");
  Destroy();
}

struct AgainTest : testing::TestWithParam<const char*> {};

TEST_P(AgainTest, ManyWorldsLeaveNothingBehind) {
  const int worlds = std::string(GetParam()) == "gloo" ? kSlowWorlds : kManyWorlds;
  auto measured = OnRanks(2, [worlds](int) {
    std::string text;
    int64_t threads = 0;
    for (int i = 1; i <= worlds; ++i) {
      WorkOnce(GetParam());
      if (i == kFirst) threads = Threads();
      // The system lists a thread for a moment after it has been joined.
      if (i == worlds) test::WaitFor([&] { return Threads() <= threads; });
      if (i == kFirst || i == worlds) text += Measure();
    }
    return text;
  });
  for (const std::string& text : measured) {
    std::istringstream numbers(text);
    std::vector<int64_t> first(5), last(5);
    for (int64_t& number : first) numbers >> number;
    for (int64_t& number : last) numbers >> number;
    ASSERT_TRUE(numbers) << text;
    EXPECT_LT(last[0], first[0] + kRoomKiB) << "KiB of memory";
    EXPECT_EQ(last[1], first[1]) << "descriptors";
    EXPECT_LE(last[2], first[2]) << "threads";
    EXPECT_EQ(last[3], 0) << "segments";
    // Allows for a few keys, because the other rank may be one step ahead.
    EXPECT_LE(last[4], first[4] + 5) << "keys";
    RecordProperty("measured", text);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, AgainTest, testing::Values("shm", "tcp", "hierarchical", "gloo"),
                         NameOfBackend);

}  // namespace
}  // namespace rankrun::comm

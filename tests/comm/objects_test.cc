// Calls with objects are made of two: what that means for time-outs, for memory
// and for who asks for another number than was sent.

#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/objects.h>

#include "base/activity.h"
#include "base/status_page.h"
#include "comm/group.h"
#include "comm/process_group_access.h"
#include "comm/throw.h"
#include "tests/base/support.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::Lt;

constexpr milliseconds kPatience{60'000};

// "no matching SendObjects after 1990 ms".
int MillisecondsIn(const std::string& text) {
  const std::string before = "SendObjects after ";
  const auto at = text.find(before);
  return at == std::string::npos ? -1 : std::stoi(text.substr(at + before.size()));
}

TEST(ObjectsTest, TheSecondHalfHasTheTimeThatTheFirstHasLeft) {
  constexpr milliseconds kLimit{2000};
  const auto told = OnRanks(1, [&](int) {
    const StatusPage page = *StatusPage::Create();
    setenv("RANKRUN_STATUS_FD", std::to_string(page.fd()).c_str(), 1);
    setenv("RANKRUN_STATUS_PATH", page.Path().c_str(), 1);
    ProcessGroup& world = Init({.timeout = kPatience, .backend = "shm"});
    std::string text;
    std::jthread receiver([&] {
      std::vector<Object> objects(1);
      text = ErrorOf([&] { RecvObjects(world, objects, GlobalRank{0}, 5, kLimit); }, kPatience);
    });
    test::WaitFor(
        [&] { return ReadActivity(page).what.find("objects with tag 5") != std::string::npos; });
    const TimePoint entered = std::chrono::steady_clock::now();
    test::WaitFor([&] { return std::chrono::steady_clock::now() > entered + milliseconds(20); });
    std::vector<uint64_t> first_half{8};
    Unwrap(GroupOf(world).ISend(first_half, GlobalRank{0}, kObjectTags + 5)).Wait();
    receiver.join();
    return text;
  });
  EXPECT_THAT(MillisecondsIn(told[0]), testing::AllOf(testing::Gt(0), Lt(1990))) << told[0];
}

}  // namespace
}  // namespace rankrun::comm

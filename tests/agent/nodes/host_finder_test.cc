#include "agent/nodes/host_finder.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/uv/uv_loop.h"
#include "tests/base/uv/loopback.h"

namespace rankrun::agent {
namespace {

std::optional<bool> Find(const std::string& host, std::chrono::milliseconds patience) {
  Loop loop;
  std::optional<bool> found;
  HostFinder finder(loop, host, [&](bool is_here) {
    EXPECT_FALSE(found);
    found = is_here;
  });
  loop.RunUntil([&] { return found.has_value(); }, patience);
  return found;
}

TEST(HostFinderTest, AnAddressOfThisHostIsHere) {
  EXPECT_EQ(Find("localhost", test::kLong), true);
  EXPECT_EQ(Find("127.0.0.1", test::kLong), true);
}

TEST(HostFinderTest, AnotherHostsAddressIsElsewhere) {
  EXPECT_EQ(Find("192.0.2.1", test::kLong), false);
}

TEST(HostFinderTest, AHostWithoutAnAddressIsNeverFound) {
  EXPECT_EQ(Find("no such host", std::chrono::milliseconds(700)), std::nullopt);
}

}  // namespace
}  // namespace rankrun::agent

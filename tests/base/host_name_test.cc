#include "base/host_name.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

namespace rankrun {
namespace {

TEST(HostNameTest, ItIsTheNameThatTheKernelHas) {
  utsname names{};
  ASSERT_EQ(uname(&names), 0);
  EXPECT_EQ(HostName(), names.nodename);
}

}  // namespace
}  // namespace rankrun

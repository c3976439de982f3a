#include "base/process/cpu_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/base/support.h"

namespace rankrun {
namespace {

// A root folder of made files.
struct CpuLimitTest : testing::Test {
  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::path file = folder.Path(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }

  void MountV2(const std::string& top = "/") const {
    Write("proc/self/mountinfo",
          "23 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
          "31 23 0:26 " +
              top + " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate");
  }

  void MountV1(const std::string& top) const {
    Write("proc/self/mountinfo", "32 31 0:28 " + top +
                                     " /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
                                     "33 31 0:29 " +
                                     top +
                                     " /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup "
                                     "rw,cpu,cpuacct");
  }

  void WriteV1(const std::string& group, int quota) const {
    std::string base = "sys/fs/cgroup/cpu,cpuacct" + group;
    Write(base + "/cpu.cfs_quota_us", std::to_string(quota));
    Write(base + "/cpu.cfs_period_us", "100000");
  }

  std::optional<int> Limit() const { return ReadCpuLimit(folder.Path("")); }

  test::TempFolder folder;
};

TEST_F(CpuLimitTest, APodOfVersion2HasItsQuotaAtTheTop) {
  MountV2();
  Write("proc/self/cgroup", "0::/");
  Write("sys/fs/cgroup/cpu.max", "800000 100000");
  EXPECT_EQ(Limit(), 8);
}

TEST_F(CpuLimitTest, TheSmallestQuotaOfAllGroupsAboveCounts) {
  MountV2();
  Write("proc/self/cgroup", "0::/user.slice/job.scope/step");
  Write("sys/fs/cgroup/user.slice/cpu.max", "300000 100000");
  Write("sys/fs/cgroup/user.slice/job.scope/cpu.max", "max 100000");
  Write("sys/fs/cgroup/user.slice/job.scope/step/cpu.max", "600000 100000");
  EXPECT_EQ(Limit(), 3);
  Write("sys/fs/cgroup/user.slice/job.scope/step/cpu.max", "20000 10000");
  EXPECT_EQ(Limit(), 2);
}

TEST_F(CpuLimitTest, AQuotaIsRoundedUp) {
  MountV2();
  Write("proc/self/cgroup", "0::/");
  for (auto [quota, limit] : {std::pair{"150000", 2}, {"1000", 1}, {"100000", 1}, {"100001", 2}}) {
    Write("sys/fs/cgroup/cpu.max", std::string(quota) + " 100000");
    EXPECT_EQ(Limit(), limit) << quota;
  }
}

TEST_F(CpuLimitTest, AContainerOfVersion1SeesItsGroupAtTheMountPoint) {
  MountV1("/docker/abc");
  Write("proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/");
  WriteV1("", 400'000);
  EXPECT_EQ(Limit(), 4);
  Write("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc/inner");
  WriteV1("/inner", 250'000);
  EXPECT_EQ(Limit(), 3);
  WriteV1("/inner", -1);
  EXPECT_EQ(Limit(), 4);
}

TEST_F(CpuLimitTest, AGroupOutsideOfTheMountCountsAsItsTop) {
  MountV1("/docker/abc");
  WriteV1("", 100'000);
  for (const char* path : {"/", "/docker/abcdef", "/../.."}) {
    Write("proc/self/cgroup", std::string("4:cpu,cpuacct:") + path);
    EXPECT_EQ(Limit(), 1) << path;
  }
}

TEST_F(CpuLimitTest, WithoutAQuotaThereIsNoLimit) {
  EXPECT_EQ(Limit(), std::nullopt) << "no files at all";
  MountV2();
  EXPECT_EQ(Limit(), std::nullopt) << "no group";
  Write("proc/self/cgroup", "0::/");
  EXPECT_EQ(Limit(), std::nullopt) << "the root group has no cpu.max";
  for (const char* text : {"max 100000", "", "100000", "x y", "0 100000", "-1 100000", "5 0"}) {
    Write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(Limit(), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace rankrun

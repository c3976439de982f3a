#include "agent/health/proc_tables.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

const std::string kMounts =
    "27 1 254:0 / / rw,relatime - ext4 /dev/root rw\n"
    "36 27 0:40 / /mnt/data rw,noatime shared:2 master:1 - nfs4 nas:/export/my\\040data rw\n"
    "37 36 0:41 / /mnt/data/scratch rw - tmpfs tmpfs rw\n"
    "38 27 0:42 / /mnt/with\\040space rw - fuse.sshfs me@host:/ rw\n"
    "broken\n";

TEST(MountsTest, AMountIsFoundByItsNumber) {
  EXPECT_EQ(MountWithId(kMounts, 36), (Mount{36, "/mnt/data", "nfs4", "nas:/export/my data"}));
  EXPECT_EQ(MountWithId(kMounts, 99), std::nullopt);
  EXPECT_EQ(MountWithId(kMounts, -1), std::nullopt);
}

TEST(MountsTest, APathIsOnTheMountThatIsNearestAboveIt) {
  EXPECT_EQ(MountOfPath(kMounts, "/mnt/data/a/b")->id, 36);
  EXPECT_EQ(MountOfPath(kMounts, "/mnt/data")->id, 36);
  EXPECT_EQ(MountOfPath(kMounts, "/mnt/data2/a")->id, 27);
  EXPECT_EQ(MountOfPath(kMounts, "/mnt/data/scratch/x")->id, 37);
  EXPECT_EQ(MountOfPath(kMounts, "/mnt/with space/x")->id, 38);
  EXPECT_EQ(MountOfPath(kMounts, "relative"), std::nullopt);
}

TEST(MountsTest, AMountHidesAnEarlierOneAtItsPlace) {
  const std::string again = kMounts + "50 36 0:50 / /mnt/data rw - xfs /dev/sdb rw\n";
  EXPECT_EQ(MountOfPath(again, "/mnt/data/x")->id, 50);
}

TEST(MountsTest, ServersAreNamedAndFileSystemsOfThisHostAreNot) {
  EXPECT_EQ(ServerInWords(*MountWithId(kMounts, 36)), "on the NFS server nas:/export/my data");
  EXPECT_EQ(ServerInWords(*MountWithId(kMounts, 38)), "on fuse.sshfs (me@host:/)");
  EXPECT_EQ(ServerInWords({.type = "cifs", .source = "//nas/x"}), "on the SMB server //nas/x");
  EXPECT_EQ(ServerInWords({.type = "lustre", .source = "mds@tcp:/fs"}), "on lustre (mds@tcp:/fs)");
  EXPECT_EQ(ServerInWords(*MountWithId(kMounts, 27)), "");
}

TEST(LocksTest, TheHolderIsTheProcessAboveTheWaiter) {
  const std::string locks =
      "1: FLOCK  ADVISORY  WRITE 22217 fe:00:2146403 0 EOF\n"
      "1: -> FLOCK  ADVISORY  WRITE 22221 fe:00:2146403 0 EOF\n"
      "1:  -> FLOCK  ADVISORY  WRITE 22222 fe:00:2146403 0 EOF\n"
      "2: POSIX  ADVISORY  READ 44 fe:00:7 128 128\n"
      "3: OFDLCK ADVISORY  WRITE -1 fe:00:8 0 EOF\n"
      "3: -> OFDLCK ADVISORY  WRITE 50 fe:00:8 0 EOF\n";
  EXPECT_EQ(LockHolder(locks, 22221), 22217);
  EXPECT_EQ(LockHolder(locks, 22222), 22217);
  EXPECT_EQ(LockHolder(locks, 44), std::nullopt) << "it has the lock";
  EXPECT_EQ(LockHolder(locks, 50), std::nullopt) << "the table has no process";
  EXPECT_EQ(LockHolder("", 22221), std::nullopt);
}

}  // namespace
}  // namespace rankrun::agent

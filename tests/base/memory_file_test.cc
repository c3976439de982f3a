#include "base/memory_file.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>

#include "base/random_bytes.h"
#include "tests/base/denied_call.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

constexpr std::array kRefusals = {ENOSYS, EPERM};

// Returns whether bytes that were written to a file at `path` are in `file`.
bool IsTheFile(const Fd& file, const std::string& path) {
  Fd other(open(path.c_str(), O_RDWR | O_CLOEXEC));
  char text[3] = "";
  return write(other.get(), "up", 2) == 2 && pread(file.get(), text, 2, 0) == 2 &&
         std::string(text) == "up";
}

std::string PathOf(const Fd& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

TEST(MemoryFileTest, ItsSizeCanBeFixed) {
  auto file = CreateMemoryFile("a-name");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(fcntl(file->get(), F_GETFD), FD_CLOEXEC);
  EXPECT_TRUE(IsTheFile(*file, PathOf(*file)));
  EXPECT_TRUE(SealSize(*file));
  EXPECT_NE(ftruncate(file->get(), 0), 0);
  EXPECT_TRUE(HasSealedMemory());
}

TEST(MemoryFileTest, WithoutTheCallItIsAFileWithoutNameAndSeals) {
  for (int error : kRefusals) {
    pid_t confined = test::Fork([&] {
      if (!test::Deny({.name = "memfd_create", .number = SYS_memfd_create, .error = error})) {
        return 98;
      }
      auto file = CreateMemoryFile("a-name");
      if (!file || fcntl(file->get(), F_GETFD) != FD_CLOEXEC) return 1;
      if (!IsTheFile(*file, PathOf(*file))) return 2;
      struct stat status {};
      if (fstat(file->get(), &status) != 0 || status.st_nlink != 0) return 3;
      return SealSize(*file) || HasSealedMemory() ? 4 : 0;
    });
    EXPECT_EQ(test::WaitForExit(confined), ProcessExit{}) << error;
  }
}

TEST(RandomBytesTest, TheyComeFromTheDeviceWithoutTheCall) {
  for (int error : kRefusals) {
    pid_t confined = test::Fork([&] {
      if (!test::Deny({.name = "getrandom", .number = SYS_getrandom, .error = error})) return 98;
      std::array<unsigned char, 512> first{}, second{};
      if (!FillRandom(first) || !FillRandom(second)) return 1;
      return first != second ? 0 : 2;
    });
    EXPECT_EQ(test::WaitForExit(confined), ProcessExit{}) << error;
  }
}

}  // namespace
}  // namespace rankrun

#include "agent/stacks/helper/proc_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rankrun::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProcFactsTest, NamesMayHaveBrackets) {
  EXPECT_EQ(ParseStat("4711 (a) b) T 1 2").name, "a) b");
  EXPECT_EQ(ParseStat("4711 (a) b) T 1 2").state, 'T');
  EXPECT_EQ(ParseStat("").state, '?');
  EXPECT_EQ(ParseStat("1 )(").state, '?');
}

TEST(ProcFactsTest, SystemCallsAreNamed) {
  auto read = ParseSystemCall(std::to_string(SYS_read) + " 0x5 0x7f00 0x10 0x0 0x0 0x0 0x1 0x2");
  EXPECT_EQ(read.name, "read");
  EXPECT_EQ(read.descriptor, 5);
  auto open = ParseSystemCall(std::to_string(SYS_openat) + " 0xffffffffffffff9c 0x7f08 0x0");
  EXPECT_EQ(open.name, "openat");
  EXPECT_EQ(open.path, 0x7f08u);
  EXPECT_EQ(open.descriptor, -1);
  EXPECT_EQ(ParseSystemCall("running").name, "");
  EXPECT_EQ(ParseSystemCall("-1 0x7f 0x1").name, "");
  EXPECT_EQ(ParseSystemCall("99999 0x1").name, "");
  EXPECT_EQ(ParseSystemCall("").name, "");
}

TEST(ProcFactsTest, TheMainThreadComesFirst) {
  const ProcessStacks own = ReadProcFacts(getpid());
  ASSERT_FALSE(own.threads.empty());
  EXPECT_EQ(own.threads[0].tid, getpid());
  EXPECT_EQ(own.note, "");
}

TEST(ProcFactsTest, AProcessThatIsGoneIsReported) {
  EXPECT_THAT(ReadProcFacts(0x3fffffff).note, HasSubstr("no such process"));
}

TEST(ProcFactsTest, ATracerIsNamed) {
  EXPECT_FALSE(TracerOf(getpid()));
  EXPECT_FALSE(TracerOf(0x3fffffff));
  EXPECT_EQ(TracerNote({7, "gdb"}), "pid 7 (gdb) traces it already");
}

TEST(ProcFactsTest, TheWayToPermissionIsNamed) {
  EXPECT_THAT(PermissionNote("1"), HasSubstr("kernel.yama.ptrace_scope (1)"));
  EXPECT_THAT(PermissionNote("0"), Not(HasSubstr("yama")));
  EXPECT_THAT(PermissionNote(""), HasSubstr("SYS_PTRACE"));
}

}  // namespace
}  // namespace rankrun::agent

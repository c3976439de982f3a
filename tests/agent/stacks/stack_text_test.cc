#include "agent/stacks/stack_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/stacks/stacks_json.h"
#include "agent/stacks/worker_stacks.h"

namespace rankrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

StackFrame Native(const std::string& function, const std::string& module) {
  return {.function = function, .file = "", .module = module};
}
StackFrame Python(const std::string& function, int line) {
  return {.function = function, .file = "/home/train.py", .line = line, .module = ""};
}

ProcessStacks Stacks(ThreadStack thread) {
  thread.tid = 7;
  thread.state = 'S';
  return {.pid = 7, .name = "train", .state = 'S', .threads = {thread}};
}

const std::string kLibc = "/usr/lib/x86_64-linux-gnu/libc.so.6";
const std::string kPython = "/usr/lib/libpython3.11.so.1.0";

TEST(StackTextTest, FramesOfTheCLibraryBecomeTheCallOfTheProgram) {
  auto stacks =
      Stacks({.system_call = "clock_nanosleep",
              .native = {Native("clock_nanosleep", kLibc), Native("__nanosleep", kLibc),
                         Native("sleep", kLibc), Native("Wait(int)", "/bin/worker"),
                         Native("main", "/bin/worker"), Native("", kLibc),
                         Native("__libc_start_main", kLibc), Native("_start", "/bin/worker")}});
  EXPECT_THAT(FramesThatMatter(stacks), ElementsAre("sleep()", "Wait (worker)", "main (worker)"));
}

TEST(StackTextTest, InternalNamesOfTheCLibraryAreCleaned) {
  auto stacks =
      Stacks({.system_call = "futex",
              .native = {Native("__lll_lock_wait", kLibc), Native("___pthread_mutex_lock", kLibc),
                         Native("Lock()", "/bin/worker")}});
  EXPECT_THAT(FramesThatMatter(stacks), ElementsAre("pthread_mutex_lock()", "Lock (worker)"));
}

TEST(StackTextTest, TheFileOfTheSystemCallIsNamed) {
  auto stacks = Stacks({.system_call = "read",
                        .system_call_file = "/data/pipe",
                        .native = {Native("read", kLibc), Native("main", "/bin/worker")}});
  EXPECT_THAT(FramesThatMatter(stacks), ElementsAre("read(/data/pipe)", "main (worker)"));
}

TEST(StackTextTest, PythonFramesReplaceThoseOfTheInterpreter) {
  auto stacks =
      Stacks({.system_call = "futex",
              .native = {Native("pthread_cond_wait", kLibc),
                         Native("c10d::A::Wait()", "/x/libtorch_cpu.so"),
                         Native("c10d::B::Wait()", "/x/libtorch_cpu.so"),
                         Native("c10d::C::Wait()", "/x/libtorch_cpu.so"),
                         Native("cfunction_call", kPython), Native("main", "/usr/bin/python3.11")},
              .python = {Python("step", 31), Python("main", 88), Python("<module>", 90)}});
  stacks.interpreter = kPython;
  EXPECT_THAT(
      FramesThatMatter(stacks),
      ElementsAre("pthread_cond_wait()", "c10d::A::Wait (libtorch_cpu.so)",
                  "c10d::B::Wait (libtorch_cpu.so)", "step (train.py:31)", "main (train.py:88)"));
  const std::string text = FormatStacksText(stacks);
  EXPECT_THAT(text, HasSubstr("step at /home/train.py:31"));
  EXPECT_THAT(text, Not(HasSubstr("cfunction_call")));
}

TEST(StackTextTest, WithoutFramesTheSystemCallIsLeft) {
  EXPECT_THAT(FramesThatMatter(Stacks({.system_call = "read", .system_call_file = "/nfs/x"})),
              ElementsAre("read(/nfs/x)"));
  EXPECT_THAT(FramesThatMatter(Stacks({})), IsEmpty());
  EXPECT_THAT(FramesThatMatter({.pid = 7, .note = "it has ended"}), IsEmpty());
}

TEST(StackTextTest, FunctionsAreShortened) {
  const std::pair<const char*, const char*> kCases[] = {
      {"main", "main"},
      {"Wait(int, char const*)", "Wait"},
      {"void ns::Call<int, std::vector<int>>::Run<3>(int)", "ns::Call::Run"},
      {"(anonymous namespace)::Lock(std::mutex&)", "Lock"},
      {"main.<locals>.<lambda>", "main.<locals>.<lambda>"},
      {"<module>", "<module>"},
      {"operator<<(std::ostream&, int)", "operator<<(std::ostream&, int)"},
      {"", ""}};
  for (auto [function, shortened] : kCases) EXPECT_EQ(ShortFunction(function), shortened);
}

TEST(StackTextTest, LinesOfTheReportAreWrapped) {
  WorkerStacks stacks{.frames = {std::string(50, 'a'), std::string(60, 'b'), "c"}, .note = "why"};
  EXPECT_EQ(StackLine(stacks, 100, 20, "  "),
            std::string(50, 'a') + "\n  <- " + std::string(60, 'b') + " <- c (why)");
  EXPECT_EQ(StackLine({}, 100, 0, ""), "");
}

TEST(StackTextTest, TextsOfAProcessAreSafeForATerminal) {
  auto stacks = Stacks({.native = {Native("a\x1b[31m\n", "/bin/x\n")}});
  EXPECT_THAT(FormatStacksText(stacks), Not(HasSubstr("\x1b")));
  EXPECT_THAT(FramesThatMatter(stacks)[0], Not(HasSubstr("\x1b")));
}

TEST(StacksJsonTest, StacksSurviveTheirLine) {
  ProcessStacks stacks = Stacks({.name = "main",
                                 .wait_channel = "futex_do_wait",
                                 .system_call = "read",
                                 .system_call_file = "/x",
                                 .native = {Native("read", kLibc)},
                                 .python = {Python("step", 3)},
                                 .kernel = {"pipe_read"}});
  stacks.note = "n";
  stacks.python_note = "p";
  stacks.interpreter = kPython;
  stacks.stopped_us = 1234;
  auto parsed = ParseStacks(FormatStacks(stacks));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed, stacks);
}

TEST(StacksJsonTest, LengthsAreLimited) {
  ProcessStacks stacks = Stacks({.name = std::string(9999, 'x')});
  stacks.threads.resize(2000, stacks.threads[0]);
  stacks.threads[0].native.assign(1000, Native(std::string(9999, 'f'), "m"));
  auto parsed = ParseStacks(FormatStacks(stacks));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->threads.size(), kMaxStackThreads);
  EXPECT_EQ(parsed->threads[0].native.size(), kMaxStackFrames);
  EXPECT_EQ(parsed->threads[0].native[0].function.size(), kMaxStackText);
}

TEST(StacksJsonTest, OtherLinesAreRefused) {
  for (const char* line : {"", "{", "[]", "{}", R"({"pid":"x"})", R"({"pid":-1})"}) {
    EXPECT_FALSE(ParseStacks(line)) << line;
  }
  auto odd = ParseStacks(R"({"pid":1,"threads":[1,{"native":[null,{"line":-5}],"kernel":3}]})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->threads.size(), 1u);
  EXPECT_EQ(odd->threads[0].native[0].line, 0);
}

}  // namespace
}  // namespace rankrun::agent

#include "agent/preload/preload_texts.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace rankrun::agent {
namespace {

SpawnSpec Worker() {
  return {.file = "/usr/bin/python3",
          .arguments = {"python3", "-u", "a\xFF\x01.py"},
          .environment = {"A=\xE4", "B="},
          .cpus = {0, 2}};
}

TEST(PreloadTextsTest, AnOrderKeepsEachByte) {
  EXPECT_EQ(EncodeForkOrder(Worker(), 1),
            R"({"arguments":["python3","-u","a)"
            "\xC3\xBF"
            R"(\u0001.py"],"core_bytes":null,"cpus":[0,2],"environment":["A=)"
            "\xC3\xA4"
            R"(","B="],"oom_score_adj":null,"open_files":null,"options":1})");
}

TEST(PreloadTextsTest, AnOrderHasTheLimits) {
  SpawnSpec worker = Worker();
  worker.open_files = 1024;
  worker.core_bytes = RLIM_INFINITY;
  worker.oom_score_adj = 500;
  const std::string order = EncodeForkOrder(worker, 1);
  EXPECT_NE(order.find(R"("open_files":1024)"), order.npos) << order;
  EXPECT_NE(order.find(R"("core_bytes":-1)"), order.npos) << order;
  EXPECT_NE(order.find(R"("oom_score_adj":500)"), order.npos) << order;
}

TEST(PreloadTextsTest, TheResultOfAnImportIsRead) {
  auto result = PreloadResult::Parse(R"({"notes": ["x: no"], "unsafe": "y runs 1 thread"})");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->notes, std::vector<std::string>{"x: no"});
  EXPECT_EQ(result->unsafe, "y runs 1 thread");
  auto safe = PreloadResult::Parse(R"({"notes": [], "unsafe": null})");
  ASSERT_TRUE(safe);
  EXPECT_EQ(safe->unsafe, "");
}

TEST(PreloadTextsTest, TheAnswersAreRead) {
  EXPECT_EQ(*ParseChangedFile(R"({"changed": "/a.py"})"), "/a.py");
  EXPECT_EQ(*ParseChangedFile(R"({"changed": null})"), "");
  EXPECT_EQ(*ParseForkedPid(R"({"pid": 4711})", Worker()), 4711);
}

TEST(PreloadTextsTest, AFailedForkIsThatOfAProgram) {
  auto exhausted = ParseForkedPid(R"({"step": "fork", "errno": 11})", Worker());
  ASSERT_FALSE(exhausted);
  EXPECT_EQ(exhausted.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(exhausted.error().message, "start /usr/bin/python3: Resource temporarily unavailable");
  auto unbound = ParseForkedPid(R"({"step": "bind", "errno": 22})", Worker());
  ASSERT_FALSE(unbound);
  EXPECT_EQ(unbound.error().message, "start /usr/bin/python3: bind to CPUs 0,2: Invalid argument");
}

TEST(PreloadTextsTest, OtherTextsAreNamed) {
  for (const std::string text : {"", "x", "[]", "{}", "null", R"({"pid": 0})", R"({"pid": "1"})",
                                 R"({"step": 1, "errno": 1})", R"({"step": "fork"})",
                                 R"({"notes": 1})", R"({"notes": [1]})"}) {
    auto pid = ParseForkedPid(text, Worker());
    ASSERT_FALSE(pid) << text;
    EXPECT_EQ(pid.error().code, ErrorCode::kMismatch);
    EXPECT_EQ(pid.error().message, "it sent " + text);
    EXPECT_FALSE(ParseChangedFile(text)) << text;
    EXPECT_FALSE(PreloadResult::Parse(text)) << text;
  }
}

}  // namespace
}  // namespace rankrun::agent

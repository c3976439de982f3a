#include "agent/output/ended_output.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

LastOutput Wrote(const std::string& out, const std::string& error) {
  LastOutput worker{.pid = 7};
  worker.out.tail.Add(out);
  worker.error.tail.Add(error);
  return worker;
}

TEST(EndedOutputTest, AReaderOfTheAttemptGetsTheRestOfIt) {
  EndedOutput ended;
  EXPECT_FALSE(ended.HasMore(0, -1, 0, 0));
  ended.Keep(3, 4, {Wrote("one\n", ""), Wrote("two\n", "bad\n")});
  EXPECT_TRUE(ended.HasMore(5, 3, 4, 0)) << "of standard error";
  EXPECT_FALSE(ended.HasMore(5, 3, 4, 4));
  EXPECT_FALSE(ended.HasMore(5, 2, 0, 0)) << "positions in another attempt";
  EXPECT_FALSE(ended.HasMore(3, 3, 0, 0)) << "a rank of another node";
  EXPECT_FALSE(ended.HasMore(6, 3, 0, 0));
  EXPECT_EQ(ended.Find(4)->out.tail.After(0, 100).text, "one\n");
  EXPECT_EQ(ended.Find(6), nullptr);
}

TEST(EndedOutputTest, TheOutputOfManyWorkersIsCutAtItsBeginning) {
  constexpr size_t kWorkers = 128;
  EndedOutput ended;
  ended.Keep(0, 0, std::vector<LastOutput>(kWorkers, Wrote(std::string(60'000, 'x') + "end", "")));
  auto part = ended.Find(9)->out.tail.After(0, SIZE_MAX);
  EXPECT_EQ(part.text.size(), EndedOutput::kMaxBytes / kWorkers / 2);
  EXPECT_TRUE(part.text.ends_with("end"));
  EXPECT_EQ(part.end(), 60'003u);
}

}  // namespace
}  // namespace rankrun::agent

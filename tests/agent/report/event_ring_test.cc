#include "agent/report/event_ring.h"

#include <gmock/gmock.h>

namespace rankrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(EventRingTest, LinesComeOnceEach) {
  EventRing ring;
  EXPECT_THAT(ring.After(0, 100).lines, IsEmpty());
  ring.Add("a");
  ring.Add("b");
  auto first = ring.After(0, 100);
  EXPECT_THAT(first.lines, ElementsAre("a", "b"));
  EXPECT_EQ(first.last, 2u);
  ring.Add("c");
  EXPECT_THAT(ring.After(first.last, 100).lines, ElementsAre("c"));
  EXPECT_THAT(ring.After(3, 100).lines, IsEmpty());
  EXPECT_EQ(ring.After(99, 100).last, 3u) << "of another incarnation of the agent";
}

TEST(EventRingTest, OnlyTheLastThousandAreKept) {
  EventRing ring;
  for (int i = 1; i <= 1'500; ++i) ring.Add(std::to_string(i));
  auto found = ring.After(0, 1 << 20);
  EXPECT_THAT(found.lines, SizeIs(1'000));
  EXPECT_EQ(found.lines.front(), "501");
  EXPECT_EQ(found.dropped, 500u);
  EXPECT_EQ(ring.After(499, 1 << 20).dropped, 1u);
  EXPECT_EQ(ring.After(500, 1 << 20).dropped, 0u);
}

TEST(EventRingTest, MemoryIsLimited) {
  EventRing ring;
  for (int i = 0; i < 10; ++i) ring.Add(std::string(300 << 10, 'x'));
  EXPECT_THAT(ring.After(0, 10 << 20).lines, SizeIs(3));
  ring.Add(std::string(2 << 20, 'x'));
  EXPECT_THAT(ring.After(0, 10 << 20).lines, IsEmpty());
}

TEST(EventRingTest, AnAnswerHasTheLinesThatFitButAtLeastOne) {
  EventRing ring;
  for (const char* line : {"aaaa", "bbbb", "cccc"}) ring.Add(line);
  auto found = ring.After(0, 9);
  EXPECT_THAT(found.lines, ElementsAre("aaaa", "bbbb"));
  EXPECT_EQ(found.last, 2u);
  EXPECT_THAT(ring.After(2, 1).lines, ElementsAre("cccc"));
}

}  // namespace
}  // namespace rankrun::agent

#include "agent/report/event_ring.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace rankrun::agent {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::shared_ptr<const events::Event> Shared(events::Payload payload) {
  return std::make_shared<const events::Event>(
      events::Event{.time = {}, .run_id = "job-7", .attempt = 0, .payload = std::move(payload)});
}

auto Note(const std::string& why) { return Shared(events::NodeLost{why}); }

std::vector<std::string> Whys(const EventRing::Lines& found) {
  std::vector<std::string> whys;
  for (const std::string& line : found.lines) whys.push_back(json::parse(line).value("why", "-"));
  return whys;
}

TEST(EventRingTest, LinesComeOnceEach) {
  EventRing ring;
  EXPECT_THAT(ring.After(0, 1000).lines, IsEmpty());
  ring.Add(Note("a"));
  ring.Add(Note("b"));
  auto first = ring.After(0, 1000);
  EXPECT_THAT(Whys(first), ElementsAre("a", "b"));
  EXPECT_EQ(first.last, 2u);
  ring.Add(Note("c"));
  EXPECT_THAT(Whys(ring.After(first.last, 1000)), ElementsAre("c"));
  EXPECT_THAT(ring.After(3, 1000).lines, IsEmpty());
  EXPECT_EQ(ring.After(99, 1000).last, 3u) << "of another incarnation of the agent";
}

TEST(EventRingTest, OnlyTheLastThousandAreKept) {
  EventRing ring;
  for (int i = 1; i <= 1'500; ++i) ring.Add(Note(std::to_string(i)));
  auto found = ring.After(0, 1 << 20);
  EXPECT_THAT(found.lines, SizeIs(1'000));
  EXPECT_EQ(Whys(found).front(), "501");
  EXPECT_EQ(found.dropped, 500u);
  EXPECT_EQ(ring.After(499, 1 << 20).dropped, 1u);
  EXPECT_EQ(ring.After(500, 1 << 20).dropped, 0u);
}

TEST(EventRingTest, MemoryIsLimited) {
  EventRing ring;
  for (int i = 0; i < 10; ++i) ring.Add(Note(std::string(300 << 10, 'x')));
  EXPECT_THAT(ring.After(0, 10 << 20).lines, SizeIs(3));
  ring.Add(Note(std::string(2 << 20, 'x')));
  auto last = ring.After(10, 10 << 20).lines;
  ASSERT_THAT(last, SizeIs(1));
  EXPECT_THAT(json::parse(last[0])["event"], "events_lost") << "its line is too long";
}

TEST(EventRingTest, AnAnswerHasTheLinesThatFitButAtLeastOne) {
  EventRing ring;
  for (const char* why : {"aaaa", "bbbb", "cccc"}) ring.Add(Note(why));
  const size_t line = ring.After(2, 1).lines.at(0).size();
  auto found = ring.After(0, 2 * line);
  EXPECT_THAT(Whys(found), ElementsAre("aaaa", "bbbb"));
  EXPECT_EQ(found.last, 2u);
  EXPECT_THAT(Whys(ring.After(2, 1)), ElementsAre("cccc"));
}

}  // namespace
}  // namespace rankrun::agent

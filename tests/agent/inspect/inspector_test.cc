#include "agent/inspect/inspector.h"

#include <gmock/gmock.h>

#include "base/uv/uv_loop.h"

namespace rankrun::agent {
namespace {

using ::testing::HasSubstr;

// The rest of Inspector is shown with real jobs, in tests/process.
TEST(InspectorTest, ARequestOfAnotherNodeIsAnsweredInTheRoomThatThereIs) {
  Loop loop;
  std::vector<InspectRequest> requests;
  Inspector inspector(loop, {},
                      {.answer = [&](const InspectRequest& request, const Inspector::Reply& reply) {
                        requests.push_back(request);
                        reply("{}");
                      }});
  std::vector<std::string> answers;
  auto keep = [&](std::string json) { answers.push_back(std::move(json)); };
  inspector.AnswerFor(R"({"request":"status"})", 1000, keep);
  inspector.AnswerFor(R"({"request":"status"})", 1 << 30, keep);
  inspector.AnswerFor("nonsense", 1000, keep);
  inspector.AnswerFor(R"({"request":"stop"})", 1000, keep);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].room, 1000u);
  EXPECT_EQ(requests[1].room, kMaxAnswerBytes);
  EXPECT_THAT(answers.at(2), HasSubstr("wrong request"));
  EXPECT_THAT(answers.at(3), HasSubstr("not a request for other nodes"));
}

TEST(InspectorTest, AnswersThatNobodyAwaitsAreIgnored) {
  Loop loop;
  Inspector inspector(loop, {}, {.answer = [](const auto&, const auto&) {}});
  inspector.OnAnswer(7, "n", "{}");
  inspector.OnOver(7, {"n"});
}

}  // namespace
}  // namespace rankrun::agent

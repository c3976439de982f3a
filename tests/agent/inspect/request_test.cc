#include "agent/inspect/request.h"

#include <gmock/gmock.h>

#include <random>

namespace rankrun::agent {
namespace {

using ::testing::HasSubstr;
using Kind = InspectRequest::Kind;

std::string WhyWrong(const std::string& line) {
  auto request = DecodeRequest(line);
  return request ? "it is right" : request.error().message;
}

TEST(RequestTest, EveryRequestSurvivesEncodingAndDecoding) {
  for (const InspectRequest& request :
       {InspectRequest{.kind = Kind::kJob},
        InspectRequest{.kind = Kind::kStatus, .all_nodes = true},
        InspectRequest{.kind = Kind::kEvents, .after = 12},
        InspectRequest{.kind = Kind::kLogs, .rank = 3, .attempt = 2, .after = 4, .after_stderr = 5},
        InspectRequest{.kind = Kind::kStop}, InspectRequest{.kind = Kind::kRestart},
        InspectRequest{.kind = Kind::kDrain, .rank = 1, .node = "n\n1"},
        InspectRequest{.kind = Kind::kStacks, .all_nodes = true, .ranks = {0, 7}}}) {
    std::string line = EncodeRequest(request);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    auto read = DecodeRequest(line);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, request) << line;
  }
}

TEST(RequestTest, FewNodesHaveALongAnswerAboutSomeRanks) {
  EXPECT_EQ(LongAnswersTo({.kind = Kind::kStacks, .ranks = {0, 7}}), 2U);
  EXPECT_EQ(LongAnswersTo({.kind = Kind::kLogs, .rank = 3}), 1U);
  EXPECT_EQ(LongAnswersTo({.kind = Kind::kStatus}), std::nullopt);
}

TEST(RequestTest, UnknownFieldsAreIgnored) {
  auto request = DecodeRequest(R"({"request":"status","colour":["blue"]})");
  ASSERT_TRUE(request);
  EXPECT_EQ(*request, InspectRequest{.kind = Kind::kStatus});
}

TEST(RequestTest, AWrongRequestIsAnsweredWithWhatWouldBeRight) {
  EXPECT_THAT(WhyWrong(""), HasSubstr("want one JSON object per line"));
  EXPECT_THAT(WhyWrong("[1]"), HasSubstr("want one JSON object per line"));
  EXPECT_THAT(WhyWrong("{}"), HasSubstr("is one of job, status, events, logs"));
  EXPECT_THAT(WhyWrong(R"({"request":"statsu"})"), HasSubstr("is one of job, status"));
  EXPECT_THAT(WhyWrong(R"({"request":7})"), HasSubstr("want a text as \"request\""));
  EXPECT_THAT(WhyWrong(R"({"request":"logs"})"), HasSubstr("needs a \"rank\""));
  EXPECT_THAT(WhyWrong(R"({"request":"logs","rank":-1})"), HasSubstr("want a rank"));
  EXPECT_THAT(WhyWrong(R"({"request":"logs","rank":5000000000})"), HasSubstr("want a rank"));
  EXPECT_THAT(WhyWrong(R"({"request":"drain"})"), HasSubstr("needs a \"node\""));
  EXPECT_THAT(WhyWrong(R"({"request":"events","after":"x"})"), HasSubstr("want a number"));
  EXPECT_THAT(WhyWrong(R"({"request":"stacks"})"), HasSubstr("needs \"ranks\""));
  EXPECT_THAT(WhyWrong(R"({"request":"stacks","ranks":[-1]})"), HasSubstr("want up to 64 ranks"));
  EXPECT_THAT(WhyWrong(EncodeRequest({.kind = Kind::kStacks, .ranks = std::vector<int>(65)})),
              HasSubstr("want up to 64 ranks"));
  EXPECT_THAT(WhyWrong(R"({"request":"status","all_nodes":1})"), HasSubstr("want a boolean"));
}

TEST(RequestTest, AnyBytesAreARequestOrAnError) {
  std::mt19937 random(1);
  const std::string good = R"({"request":"logs","rank":3,"after":4,"node":"n"})";
  for (int i = 0; i < 20'000; ++i) {
    std::string line = good;
    for (size_t n = random() % 4; n > 0; --n) {
      line[random() % line.size()] = static_cast<char>(random());
    }
    line.resize(random() % (line.size() + 1));
    if (auto request = DecodeRequest(line)) {
      EXPECT_TRUE(DecodeRequest(EncodeRequest(*request)));
    }
  }
  EXPECT_FALSE(DecodeRequest(std::string(60'000, '[')));
  EXPECT_FALSE(DecodeRequest(R"({"request":)" + std::string(60'000, '{')));
}

}  // namespace
}  // namespace rankrun::agent

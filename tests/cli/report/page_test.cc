#include "cli/report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report/html.h"
#include "cli/report/timeline.h"

namespace rankrun::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

KeptJob SomeJob(int ranks) {
  KeptJob job{.run_id = "job-7", .ended = 10, .outcome = "exit code 3"};
  KeptAttempt attempt{.number = 0, .began = 0, .ended = 8, .report = "text\n"};
  for (int rank = 0; rank < ranks; ++rank) {
    attempt.workers.push_back({.rank = rank,
                               .began = 1.0,
                               .ended = 8.0,
                               .part = KeptPart::kConsequence,
                               .how = "killed"});
  }
  attempt.workers.back().part = KeptPart::kCause;
  attempt.workers.back().how = "exit code 3";
  job.attempts = {attempt};
  return job;
}

size_t CountOf(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) count += 1;
  return count;
}

TEST(HtmlTest, AllTextIsEscaped) {
  EXPECT_EQ(Html("<a href='x'>&\"\x1b[1m"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\\x1b[1m");
  EXPECT_EQ(HtmlLines("<a>\n\nb"), "&lt;a&gt;\n\nb\n");
  EXPECT_EQ(HtmlLines(""), "");
}

TEST(HtmlTest, DurationsAreForReaders) {
  EXPECT_EQ(ShownDuration(0.0124), "0.012 s");
  EXPECT_EQ(ShownDuration(75), "75.0 s");
  EXPECT_EQ(ShownDuration(725), "12 min 5 s");
  EXPECT_EQ(ShownDuration(11520), "3 h 12 min");
}

TEST(TimelineTest, EachRankHasABarAndTheCauseAMark) {
  const std::string svg = TimelineSvg(SomeJob(4));
  EXPECT_EQ(CountOf(svg, "class=\"bar consequence\""), 3u);
  EXPECT_EQ(CountOf(svg, "class=\"bar cause\""), 1u);
  EXPECT_EQ(CountOf(svg, "class=\"mark\""), 1u);
  EXPECT_THAT(svg, HasSubstr("first cause: rank 3, 7.0 s: exit code 3"));
}

TEST(TimelineTest, OfManyRanksTheCauseIsDrawn) {
  const std::string svg = TimelineSvg(SomeJob(1000));
  EXPECT_EQ(CountOf(svg, "class=\"bar "), kMaxTimelineRows);
  EXPECT_THAT(svg, HasSubstr(">rank 999<"));
  EXPECT_THAT(svg, HasSubstr("872 more ranks are not drawn."));
}

TEST(TimelineTest, AnyTimesAreDrawn) {
  KeptJob job = SomeJob(1);
  for (double time : {0.0, -5.0, 1e-9, 1e12}) {
    job.ended = time;
    job.attempts[0].ended = time;
    job.attempts[0].workers[0].ended = time;
    EXPECT_LT(TimelineSvg(job).size(), 10'000u);
  }
  EXPECT_THAT(TimelineSvg({}), HasSubstr("<svg"));
}

TEST(ReportPageTest, ThePageStandsAlone) {
  KeptJob job = SomeJob(3);
  job.attempts[0].workers[2].last_lines = {"<script>x</script>"};
  job.attempts[0].workers[2].operations = {
      {.what = "AllReduce #2", .group = "world", .state = "under way", .seconds = 1.5}};
  const std::string page = ReportPage(job);
  EXPECT_THAT(page, HasSubstr("rank 2: exit code 3"));
  EXPECT_THAT(page, HasSubstr("then ranks 0, 1: killed"));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(page, HasSubstr("AllReduce #2"));
  for (const char* part : {"<script", "http:", "src=", "href=", "url(", "@import"}) {
    const size_t allowed = std::string_view(part) == "http:" ? 2 : 0;  // names of XML
    EXPECT_LE(CountOf(page, part), allowed) << part;
  }
}

TEST(ReportPageTest, WorkersThatAreOnlyCountedAreNamed) {
  KeptJob job = SomeJob(3);
  job.attempts[0].counted = {{.ranks = "ranks 3-999", .how = "killed by SIGTERM"}};
  job.attempts[0].reported_workers = 1000;
  const std::string page = ReportPage(job);
  EXPECT_THAT(page, HasSubstr("then ranks 3-999: killed by SIGTERM"));
  EXPECT_THAT(page, HasSubstr("<dt>ranks</dt><dd>1000</dd>"));
  EXPECT_THAT(page, HasSubstr("997 more ranks are not drawn."));
}

TEST(ReportPageTest, ARunningJobHasAPage) {
  KeptJob job = SomeJob(2);
  job.ended.reset();
  job.outcome.clear();
  EXPECT_THAT(ReportPage(job), HasSubstr("no end is known"));
  EXPECT_THAT(ReportPage(job), Not(HasSubstr("chip good")));
}

}  // namespace
}  // namespace rankrun::cli

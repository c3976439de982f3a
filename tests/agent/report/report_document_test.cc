#include "agent/report/report_document.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rankrun::agent {
namespace {

using nlohmann::json;

std::shared_ptr<const events::Event> Shared(events::Payload payload) {
  return std::make_shared<const events::Event>(
      events::Event{.time = {}, .run_id = "job-7", .attempt = 0, .payload = std::move(payload)});
}

auto Note(const std::string& why) { return Shared(events::NodeLost{why}); }

auto SomeReport(int exit_code = 3) {
  events::Report report;
  report.record.workers.emplace_back().exit = ProcessExit{.signaled = false, .value = exit_code};
  return Shared(report);
}

json Parsed(ReportDocument& document) { return json::parse(document.Text()); }

TEST(ReportDocumentTest, HasTheEventsInOrder) {
  ReportDocument document;
  EXPECT_EQ(Parsed(document)["events"].size(), 0u);
  document.Add(Note("a"));
  document.Add(Note("b"));
  EXPECT_FALSE(document.has_report());
  document.Add(SomeReport());
  EXPECT_TRUE(document.has_report());
  json events = Parsed(document)["events"];
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["why"], "a");
  EXPECT_EQ(events[1]["why"], "b");
  EXPECT_EQ(events[2]["event"], "report");
  EXPECT_EQ(Parsed(document)["format"], 1);
}

TEST(ReportDocumentTest, IsBoundedAndKeepsTheFirstEvent) {
  ReportDocument document;
  document.Add(Note("first"));
  const std::string large(10'000, 'x');
  for (int i = 0; i < 1000; ++i) document.Add(Note(large + std::to_string(i)));
  EXPECT_LE(document.Text().size(), ReportDocument::kMaxBytes + 10'000);
  json parsed = Parsed(document);
  EXPECT_EQ(parsed["events"][0]["why"], "first");
  EXPECT_EQ(parsed["events"].back()["why"], large + "999");
  EXPECT_EQ(parsed["dropped_events"].get<size_t>() + parsed["events"].size(), 1001u);
}

TEST(ReportDocumentTest, EarlierEventsComeFirst) {
  ReportDocument earlier;
  earlier.Add(Note("a"));
  ReportDocument document;
  document.Add(Note("b"));
  document.AddEarlier(ReportDocument::Parse(earlier.Text()));
  document.Add(Note("c"));
  json events = Parsed(document)["events"];
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["why"], "a");
  EXPECT_EQ(events[1]["why"], "b");
  EXPECT_EQ(events[2]["why"], "c");
}

TEST(ReportDocumentTest, TheNewestReportIsNeverDropped) {
  ReportDocument document;
  document.Add(Note("first"));
  document.Add(SomeReport(3));
  document.Add(SomeReport(4));
  const std::string large(10'000, 'x');
  for (int i = 0; i < 300; ++i) document.Add(Note(large));
  json events = Parsed(document)["events"];
  EXPECT_EQ(events[0]["why"], "first");
  ASSERT_EQ(events[1]["event"], "report");
  EXPECT_EQ(events[1]["cause"]["exit_code"], 4);
  EXPECT_EQ(events[2]["event"], "node_lost");
}

// A large job whose workers write what JSON must escape.
TEST(ReportDocumentTest, AReportOfAnySizeIsKept) {
  events::Report report;
  report.text.assign(4'000'000, '\1');
  for (int rank = 0; rank < 2000; ++rank) {
    WorkerRecord& worker = report.record.workers.emplace_back();
    worker.global_rank = rank;
    worker.exit = ProcessExit{.signaled = false, .value = rank == 1500 ? 3 : 1};
    worker.ending = Ending{.kind = rank == 1500 ? EndKind::kFailed : EndKind::kStopped};
    worker.stdout_tail = worker.stderr_tail = std::string(16 * 1024, '\1');
    worker.exception = worker.stdout_tail;
    worker.stderr_file = std::string(4000, 'f');
  }
  report.record.cause = 1500;
  ReportDocument document;
  document.Add(Note("first"));
  document.Add(Note("second"));
  document.Add(Shared(report));
  EXPECT_LT(document.Text().size(), ReportDocument::kMaxBytes);
  json kept = Parsed(document);
  EXPECT_EQ(kept["dropped_events"], 0);
  ASSERT_EQ(kept["events"].size(), 3u);
  EXPECT_EQ(kept["events"][2]["cause"]["rank"], 1500);
  EXPECT_TRUE(kept["events"][2]["cause"].contains("exception"));
  EXPECT_EQ(kept["events"][2]["consequences"].size(), 255u);
  EXPECT_EQ(kept["events"][2]["more_consequences"][0]["count"], 1744);
}

TEST(ReportDocumentTest, EarlierDroppedEventsAndReportsCount) {
  ReportDocument earlier;
  earlier.Add(Note("first"));
  earlier.Add(SomeReport(3));
  const std::string large(10'000, 'x');
  for (int i = 0; i < 300; ++i) earlier.Add(Note(large));
  const size_t dropped = Parsed(earlier)["dropped_events"];
  EXPECT_GT(dropped, 0u);
  ReportDocument document;
  for (int i = 0; i < 10; ++i) document.Add(Note(large));
  document.AddEarlier(ReportDocument::Parse(earlier.Text()));
  EXPECT_TRUE(document.has_report());
  json parsed = Parsed(document);
  EXPECT_EQ(parsed["dropped_events"].get<size_t>() + parsed["events"].size(), 312u);
  EXPECT_EQ(parsed["events"][1]["event"], "report");
}

TEST(ReportDocumentTest, InvalidEarlierTextIsIgnored) {
  ReportDocument document;
  document.Add(Note("b"));
  for (const char* text : {"", "{", "[]", "{\"events\": 3}", "null"}) {
    document.AddEarlier(ReportDocument::Parse(text));
  }
  EXPECT_EQ(Parsed(document)["events"].size(), 1u);
}

}  // namespace
}  // namespace rankrun::agent

#include "agent/report/report_document.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rankrun::agent {
namespace {

using nlohmann::json;

events::Event Note(const std::string& why) {
  return {.time = {}, .run_id = "job-7", .attempt = 0, .payload = events::NodeLost{why}};
}

events::Event SomeReport() {
  events::Report report;
  report.record.workers.emplace_back().exit = ProcessExit{.signaled = false, .value = 3};
  return {.time = {}, .run_id = "job-7", .attempt = 0, .payload = report};
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
  document.AddEarlier(earlier.Text());
  document.Add(Note("c"));
  json events = Parsed(document)["events"];
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["why"], "a");
  EXPECT_EQ(events[1]["why"], "b");
  EXPECT_EQ(events[2]["why"], "c");
}

TEST(ReportDocumentTest, InvalidEarlierTextIsIgnored) {
  ReportDocument document;
  document.Add(Note("b"));
  for (const char* text : {"", "{", "[]", "{\"events\": 3}", "null"}) document.AddEarlier(text);
  EXPECT_EQ(Parsed(document)["events"].size(), 1u);
}

}  // namespace
}  // namespace rankrun::agent

#include "cli/report/page.h"

#include <algorithm>
#include <vector>

#include "base/roll_call.h"
#include "cli/report/html.h"
#include "cli/report/style.h"
#include "cli/report/timeline.h"

namespace rankrun::cli {
namespace {

std::string Tag(const std::string& tag, const std::string& style, const std::string& html) {
  return "<" + tag + (style.empty() ? "" : " class=\"" + style + "\"") + ">" + html + "</" + tag +
         ">\n";
}

std::string Fact(const std::string& name, const std::string& value) {
  if (value.empty()) return "";
  return "<div><dt>" + Html(name) + "</dt><dd>" + Html(value) + "</dd></div>\n";
}

std::string NameOf(const KeptWorker& worker) {
  std::string name = "rank " + std::to_string(worker.rank);
  if (!worker.node.empty()) name += " on " + worker.node;
  return worker.pid == 0 ? name : name + " (pid " + std::to_string(worker.pid) + ")";
}

const KeptWorker* CauseOf(const KeptAttempt& attempt) {
  auto found = std::ranges::find(attempt.workers, KeptPart::kCause, &KeptWorker::part);
  return found == attempt.workers.end() ? nullptr : &*found;
}

std::string CauseText(const KeptAttempt& attempt) {
  if (!attempt.own_cause.empty()) return attempt.own_cause;
  const KeptWorker* cause = CauseOf(attempt);
  return cause == nullptr ? "unknown" : NameOf(*cause) + ": " + cause->how;
}

std::string Header(const KeptJob& job) {
  std::string state = job.outcome.empty() ? "no end is known" : job.outcome;
  if (job.ended) state = (job.has_failed ? "failed: " : "succeeded: ") + state;
  const bool is_good = job.ended && !job.has_failed;
  std::string html = Tag("span", is_good ? "chip good" : "chip", Html(state)) +
                     Tag("h1", "", Html(job.why.empty() ? "job " + job.run_id : job.why)) +
                     Tag("p", "quiet", "job " + Html(job.run_id));
  std::string facts = Fact("started", job.began) +
                      Fact("lasted", job.ended ? ShownDuration(*job.ended) : "") +
                      Fact("attempts", std::to_string(job.attempts.size())) +
                      Fact("ranks", std::to_string(RankCount(job))) + Fact("node", job.node) +
                      Fact("rankrun", job.version);
  html += Tag("dl", "", facts) + Tag("dl", "wide", Fact("program", job.program));
  return "<header>" + html + "</header>\n";
}

std::string LinesBlock(const std::string& name, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text;
  for (const std::string& line : lines) text += Html(line) + "\n";
  return Tag("div", "quiet", Html(name)) + Tag("pre", "", text);
}

std::string OperationsTable(const KeptWorker& worker) {
  if (worker.operations.empty()) return "";
  std::string rows = "<tr><th>operation</th><th>group</th><th>state</th><th>time</th></tr>\n";
  for (const KeptOperation& operation : worker.operations) {
    const bool is_under_way = operation.state == "under way";
    const std::string time = (is_under_way ? "for " : "ended ") + ShownDuration(operation.seconds) +
                             (is_under_way ? "" : " before the failure");
    rows += "<tr><td>" + Html(operation.what) + "</td><td>" + Html(operation.group) + "</td><td>" +
            Html(operation.state) + "</td><td class=\"number\">" + Html(time) + "</td></tr>\n";
  }
  return Tag("div", "quiet", "last operations of rank " + std::to_string(worker.rank)) +
         Tag("table", "", rows);
}

// Returns one line for all workers that ended in the same way.
std::string Consequences(const KeptAttempt& attempt) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (const KeptWorker& worker : attempt.workers) {
    if (worker.part == KeptPart::kCause || worker.how.empty()) continue;
    auto group =
        std::ranges::find(groups, worker.how, [](const auto& known) { return known.first; });
    if (group == groups.end()) group = groups.insert(groups.end(), {worker.how, {}});
    group->second.push_back(worker.rank);
  }
  std::string html;
  for (const auto& [how, ranks] : groups) {
    html += Tag("p", "quiet", Html("then " + RanksInWords(ranks) + ": " + how));
  }
  for (const KeptRanks& more : attempt.counted) {
    html += Tag("p", "quiet", Html("then " + more.ranks + ": " + more.how));
  }
  return html;
}

std::string Failure(const KeptAttempt& attempt) {
  const double lasted = attempt.ended.value_or(attempt.began) - attempt.began;
  std::string html = Tag("p", "quiet",
                         Html("attempt " + std::to_string(attempt.number) + ", failed after " +
                              ShownDuration(lasted))) +
                     Tag("h3", "", Html(CauseText(attempt)));
  if (const KeptWorker* cause = CauseOf(attempt)) {
    if (!cause->exception.empty()) html += Tag("pre", "", HtmlLines(cause->exception));
    html += LinesBlock("last lines of its output", cause->last_lines) + OperationsTable(*cause);
  }
  for (const KeptWorker& worker : attempt.workers) {
    if (worker.part != KeptPart::kCause) html += OperationsTable(worker);
  }
  html += Consequences(attempt);
  html +=
      Tag("p", "quiet", Html("next: " + (attempt.restart.empty() ? "the end" : attempt.restart)));
  return Tag("div", "failure", html);
}

std::string Failures(const KeptJob& job) {
  std::string html;
  for (const KeptAttempt& attempt : job.attempts) {
    if (!attempt.report.empty()) html += Failure(attempt);
  }
  return html.empty() ? "" : Tag("section", "", Tag("h2", "", "First causes") + html);
}

std::string TimelineSection(const KeptJob& job) {
  constexpr const char* kKey =
      "<ul class=\"key\"><li><i class=\"cause\"></i>first cause</li>"
      "<li><i class=\"then\"></i>ended because of it</li>"
      "<li><i class=\"good\"></i>succeeded</li><li><i class=\"unknown\"></i>no end is known</li>"
      "<li><i class=\"dot\"></i>end of an operation</li>"
      "<li><i class=\"dot open\"></i>begin of one that never ended</li></ul>\n";
  return Tag("section", "",
             Tag("h2", "", "Timeline") + Tag("div", "scroll", TimelineSvg(job)) + kKey);
}

std::string NotesSection(const KeptJob& job) {
  if (job.notes.empty()) return "";
  std::string rows = "<tr><th>after</th><th>event</th><th></th></tr>\n";
  for (const KeptNote& note : job.notes) {
    rows += "<tr><td class=\"number\">" + Html(ShownDuration(note.at)) + "</td><td>" +
            Html(note.kind) + "</td><td>" + Html(note.text) + "</td></tr>\n";
  }
  std::string html = Tag("h2", "", "Decisions") + Tag("div", "scroll", Tag("table", "", rows));
  if (job.dropped_events > 0) {
    html += Tag("p", "quiet", std::to_string(job.dropped_events) + " older events were dropped.");
  }
  return Tag("section", "", html);
}

std::string TextSection(const KeptJob& job) {
  const std::string text = ReportTextOf(job);
  if (text.empty()) return "";
  return Tag("section", "",
             "<details><summary>The report as it was printed</summary>" +
                 Tag("pre", "", HtmlLines(text)) + "</details>");
}

}  // namespace

std::string ReportPage(const KeptJob& job) {
  return "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
         "<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         Html("rankrun: job " + job.run_id) + "</title>\n<style>" + std::string(kReportStyle) +
         "</style>\n</head>\n<body>\n<main>\n" + Header(job) + Failures(job) +
         TimelineSection(job) + NotesSection(job) + TextSection(job) +
         "</main>\n</body>\n</html>\n";
}

}  // namespace rankrun::cli

#include "cli/report/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cli/report/html.h"

namespace rankrun::cli {
namespace {

constexpr double kLabelWidth = 116;
constexpr double kWidth = 1000;  // of the drawing, in units of its view box
constexpr double kRight = 14;
constexpr double kTop = 44;
constexpr double kRow = 24;
constexpr double kBar = 14;
constexpr double kBottom = 30;

std::string Px(double number) { return Decimal(number, 1); }

std::string Title(const std::string& text) { return "<title>" + Html(text) + "</title>"; }

// Returns a text element. `style` is a class and further attributes.
std::string Text(double x, double y, const std::string& style, const std::string& text) {
  return "<text x=\"" + Px(x) + "\" y=\"" + Px(y) + "\" class=\"" + style + "\">" + Html(text) +
         "</text>\n";
}

std::string Line(double x, double y1, double y2, const char* style) {
  return "<line x1=\"" + Px(x) + "\" x2=\"" + Px(x) + "\" y1=\"" + Px(y1) + "\" y2=\"" + Px(y2) +
         "\" class=\"" + style + "\"/>\n";
}

// Returns a round step of the axis: 1, 2 or 5 times a power of ten, or of a minute or hour.
double TickStep(double span) {
  constexpr double kMaxTicks = 8;
  for (double step :
       {0.01, 0.02,  0.05,  0.1,   0.2,    0.5,    1.0,    2.0,    5.0,     10.0,    20.0,   30.0,
        60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0, 86400.0}) {
    if (span / step <= kMaxTicks) return step;
  }
  return std::ceil(span / kMaxTicks / 86400) * 86400;
}

std::string TickText(double at, double step) {
  if (step < 1) return Decimal(at, step < 0.1 ? 2 : 1) + " s";
  if (at < 120) return Decimal(at, 0) + " s";
  return ShownDuration(at);
}

const char* StyleOf(const KeptWorker& worker) {
  switch (worker.part) {
    case KeptPart::kCause:
      return "bar cause";
    case KeptPart::kConsequence:
      return "bar consequence";
    case KeptPart::kSucceeded:
      return "bar succeeded";
    case KeptPart::kUnknown:
      return "bar unknown";
  }
  return "bar";
}

class Timeline {
 public:
  explicit Timeline(const KeptJob& job) : job_(job) {
    span_ = job.ended.value_or(0);
    for (const KeptAttempt& attempt : job.attempts) {
      span_ = std::max({span_, attempt.began, attempt.ended.value_or(0)});
    }
    span_ = std::max(span_, 0.001);
    ChooseRows();
  }

  std::string Svg() {
    const double height = Bottom() + kBottom;
    std::string svg = "<svg viewBox=\"0 0 " + Px(kWidth) + " " + Px(height) +
                      "\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">\n" +
                      Title("Ranks over time");
    svg += Axis();
    for (const KeptAttempt& attempt : job_.attempts) svg += Band(attempt);
    for (const auto& [rank, row] : rows_) {
      svg += Text(kLabelWidth - 10, Y(row) + 4, "label end", "rank " + std::to_string(rank));
    }
    for (const KeptAttempt& attempt : job_.attempts) {
      for (const KeptWorker& worker : attempt.workers) svg += Bar(attempt, worker);
    }
    return svg + "</svg>\n" + Omitted();
  }

 private:
  void ChooseRows() {
    std::set<int> causes;
    std::set<int> others;
    for (const KeptAttempt& attempt : job_.attempts) {
      for (const KeptWorker& worker : attempt.workers) {
        const bool is_first = causes.size() < kMaxTimelineRows;
        if (worker.part == KeptPart::kCause && is_first) causes.insert(worker.rank);
        others.insert(worker.rank);
      }
    }
    ranks_ = std::max(others.size(), RankCount(job_));
    std::set<int> chosen = causes;
    for (int rank : others) {
      if (chosen.size() >= kMaxTimelineRows) break;
      chosen.insert(rank);
    }
    for (int rank : chosen) rows_.emplace(rank, rows_.size());
  }

  double X(double at) const {
    const double part = std::clamp(at / span_, 0.0, 1.0);
    return kLabelWidth + part * (kWidth - kLabelWidth - kRight);
  }
  static double Y(size_t row) { return kTop + kRow * (static_cast<double>(row) + 0.5); }
  double Bottom() const { return kTop + kRow * static_cast<double>(rows_.size()); }

  std::string Axis() const {
    std::string svg;
    const double step = TickStep(span_);
    for (int i = 0; step * i <= span_; ++i) {
      svg += Line(X(step * i), kTop, Bottom() + 4, "grid");
      svg += Text(X(step * i), Bottom() + 20, i == 0 ? "tick" : "tick middle",
                  TickText(step * i, step));
    }
    return svg;
  }

  // The time of an attempt, behind its bars.
  std::string Band(const KeptAttempt& attempt) const {
    const double left = X(attempt.began);
    const double width = std::max(X(attempt.ended.value_or(span_)) - left, 1.0);
    const std::string name = "attempt " + std::to_string(attempt.number);
    std::string svg = "<rect x=\"" + Px(left) + "\" y=\"" + Px(kTop - 4) + "\" width=\"" +
                      Px(width) + "\" height=\"" + Px(Bottom() - kTop + 8) +
                      "\" class=\"band\" rx=\"3\">" + Title(name) + "</rect>\n";
    constexpr double kLongName = 68;
    constexpr double kShortName = 16;
    if (width >= kLongName) svg += Text(left + 4, kTop - 12, "attempt", name);
    const bool is_short = width < kLongName && width >= kShortName;
    if (is_short) svg += Text(left + 2, kTop - 12, "attempt", std::to_string(attempt.number));
    return svg;
  }

  std::string Bar(const KeptAttempt& attempt, const KeptWorker& worker) const {
    auto row = rows_.find(worker.rank);
    if (row == rows_.end()) return "";
    const double began = worker.began.value_or(attempt.began);
    const double ended = worker.ended.value_or(attempt.ended.value_or(span_));
    const double left = X(began);
    const double width = std::max(X(ended) - left, 2.0);
    const double y = Y(row->second);
    std::string text = "rank " + std::to_string(worker.rank);
    if (!worker.node.empty()) text += " on " + worker.node;
    if (worker.pid != 0) text += " (pid " + std::to_string(worker.pid) + ")";
    text += ", " + ShownDuration(ended - began) + ": ";
    text += worker.how.empty() ? "no end is known" : worker.how;
    std::string svg = "<rect x=\"" + Px(left) + "\" y=\"" + Px(y - kBar / 2) + "\" width=\"" +
                      Px(width) + "\" height=\"" + Px(kBar) + "\" rx=\"3\" class=\"" +
                      StyleOf(worker) + "\">" + Title(text) + "</rect>\n";
    for (const KeptOperation& operation : worker.operations) {
      svg += Operation(operation, EvidenceTime(attempt), y);
    }
    if (worker.part == KeptPart::kCause) svg += CauseMark(left + width, y, text);
    return svg;
  }

  // Returns the time at which operations were read: the end of the cause.
  double EvidenceTime(const KeptAttempt& attempt) const {
    for (const KeptWorker& worker : attempt.workers) {
      if (worker.part == KeptPart::kCause && worker.ended) return *worker.ended;
    }
    return attempt.ended.value_or(span_);
  }

  std::string Operation(const KeptOperation& operation, double read_at, double y) const {
    const double x = X(read_at - operation.seconds);
    const bool is_under_way = operation.state == "under way";
    const std::string text = operation.what + " of " + operation.group + ": " + operation.state +
                             (is_under_way ? " for " : " ") + ShownDuration(operation.seconds) +
                             (is_under_way ? "" : " before the failure");
    return "<circle cx=\"" + Px(x) + "\" cy=\"" + Px(y) + "\" r=\"3.2\" class=\"" +
           (is_under_way ? "operation open" : "operation") + "\">" + Title(text) + "</circle>\n";
  }

  static std::string CauseMark(double x, double y, const std::string& text) {
    return "<path d=\"M" + Px(x) + " " + Px(y - 9) + " l8 9 l-8 9 l-8 -9 z\" class=\"mark\">" +
           Title("first cause: " + text) + "</path>\n";
  }

  std::string Omitted() const {
    if (rows_.size() >= ranks_) return "";
    return "<p class=\"quiet\">" + std::to_string(ranks_ - rows_.size()) +
           " more ranks are not drawn.</p>\n";
  }

  const KeptJob& job_;
  double span_;
  size_t ranks_ = 0;
  std::map<int, size_t> rows_;  // by rank
};

}  // namespace

std::string TimelineSvg(const KeptJob& job) { return Timeline(job).Svg(); }

}  // namespace rankrun::cli

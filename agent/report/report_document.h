#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/report/event.h"

namespace rankrun::agent {

// The document of a kept report: a JSON object with the events of one job on this node, the
// oldest first. docs/output.md describes it.
class ReportDocument {
 public:
  // Largest size of all events. If there are more, the oldest are dropped, but neither the
  // first one nor the newest report.
  static constexpr size_t kMaxBytes = 1024 * 1024;

  // Returns the document with this text; an empty one if the text is invalid.
  static ReportDocument Parse(const std::string& text);

  void Add(std::shared_ptr<const events::Event> event);
  // Puts the events of an earlier agent of the job before those of this one.
  void AddEarlier(ReportDocument earlier);

  // Formats the events that were added. Text does this, too, but not once for all copies.
  void Format();

  // Returns whether a failed attempt has been reported.
  bool has_report() const { return has_report_; }
  std::string Text();

 private:
  struct Line {
    std::string text;
    bool is_report;
  };

  void Append(Line line);
  void DropOldest();

  // A job that never fails formats nothing, because that would delay its start.
  std::vector<std::shared_ptr<const events::Event>> unformatted_;
  std::deque<Line> lines_;
  std::optional<size_t> newest_report_;  // its index in `lines_`
  size_t bytes_ = 0;
  size_t dropped_ = 0;
  bool has_report_ = false;
};

}  // namespace rankrun::agent

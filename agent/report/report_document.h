#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "agent/report/event.h"

namespace rankrun::agent {

// The document of a kept report: a JSON object with the events of one job on this node, the
// oldest first. docs/output.md describes it.
class ReportDocument {
 public:
  // Largest size of all events. If there are more, the oldest but the first are dropped.
  static constexpr size_t kMaxBytes = 1024 * 1024;

  void Add(const events::Event& event);
  // Puts the events of an earlier agent of the job before those of this one. `text` is its
  // document; invalid text is ignored.
  void AddEarlier(const std::string& text);

  // Formats the events that were added. Text does this, too, but not once for all copies.
  void Format();

  // Returns whether a failed attempt has been reported.
  bool has_report() const { return has_report_; }
  std::string Text();

 private:
  void Append(std::string line);

  // A job that never fails formats nothing, because that would delay its start.
  std::vector<events::Event> unformatted_;
  std::deque<std::string> lines_;
  size_t bytes_ = 0;
  size_t dropped_ = 0;
  bool has_report_ = false;
};

}  // namespace rankrun::agent

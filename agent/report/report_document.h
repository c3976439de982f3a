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

  // Returns whether a failed attempt has been reported.
  bool has_report() const { return has_report_; }
  std::string Text() const;

 private:
  void Format() const;
  void Append(std::string line) const;

  // A job that never fails formats nothing, because that would delay its start.
  mutable std::vector<events::Event> unformatted_;
  mutable std::deque<std::string> lines_;
  mutable size_t bytes_ = 0;
  mutable size_t dropped_ = 0;
  bool has_report_ = false;
};

}  // namespace rankrun::agent

#pragma once

#include <string>
#include <vector>

#include "base/clock.h"

namespace rankrun {

// Records which of `participants` (numbered from 0) have arrived, and reports
// which are missing and since when. All waits for several processes use it.
// Pure: time is an argument.
class RollCall {
 public:
  RollCall(int participants, TimePoint since);

  // Returns false if `participant` had arrived before. `participant` must be in
  // range.
  bool Arrive(int participant);

  bool complete() const { return missing_ == 0; }
  int present() const { return static_cast<int>(here_.size()) - missing_; }
  int participants() const { return static_cast<int>(here_.size()); }
  std::vector<int> Missing() const;  // ascending

  // Returns "6 of 8 present after 12.0 s".
  std::string Count(TimePoint now) const;
  // Returns "6 of 8 present after 12.0 s, missing: 3, 5, 6", with `noun` before
  // the numbers if it is not empty ("missing: ranks 3, 5, 6").
  std::string Describe(TimePoint now, const std::string& noun) const;

 private:
  std::vector<bool> here_;
  int missing_;
  TimePoint since_;
};

// Returns "0-2, 5, 7, 9-11" for ascending numbers; "none" for no number.
std::string FormatRanks(const std::vector<int>& ranks);

// Returns "rank 3" or "ranks 0-2, 5".
std::string RanksInWords(const std::vector<int>& ranks);

}  // namespace rankrun

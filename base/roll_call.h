#pragma once

#include <string>
#include <vector>

#include "base/clock.h"

namespace rankrun {

// Who of `participants` (numbered from 0) has come, who is missing and since
// when. The one algorithm behind every wait for several others. Pure: time is
// an argument.
class RollCall {
 public:
  RollCall(int participants, TimePoint since);

  // Returns false if `who` had come before. `who` must be in range.
  bool Arrive(int who);

  bool complete() const { return missing_ == 0; }
  int present() const { return static_cast<int>(here_.size()) - missing_; }
  int participants() const { return static_cast<int>(here_.size()); }
  std::vector<int> Missing() const;  // ascending

  // "6 of 8 present after 12.0 s".
  std::string Count(TimePoint now) const;
  // "6 of 8 present after 12.0 s, missing: 3, 5, 6" with `noun` put before the
  // numbers when it is not empty ("missing: ranks 3, 5, 6").
  std::string Describe(TimePoint now, const std::string& noun) const;

 private:
  std::vector<bool> here_;
  int missing_;
  TimePoint since_;
};

// "0-2, 5, 7, 9-11" for ascending numbers; "none" for no number.
std::string FormatRanks(const std::vector<int>& ranks);

// "rank 3", "ranks 0-2, 5".
std::string RanksInWords(const std::vector<int>& ranks);

}  // namespace rankrun

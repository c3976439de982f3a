#pragma once

#include <string>

#include "agent/job_record.h"
#include "base/clock.h"

namespace rankrun::agent {

// What follows the death of an agent that had not said goodbye.
struct NextIncarnation {
  bool starts = false;
  Duration pause{};
  // "starting again: restart 1 of 3"; why not, or nothing where nothing else
  // was to be expected.
  std::string words;
  JobRecord record;      // for the next one, if it starts
  int quick_deaths = 0;  // in a row
};

// `last` is the record that the dead agent left, `quick_deaths` of the decision
// before. Budget allowing the next one starts at once; only agents that die
// again and again as soon as they are started get pauses. Pure.
NextIncarnation DecideNextIncarnation(const JobRecord& last, int quick_deaths, Duration lived);

}  // namespace rankrun::agent

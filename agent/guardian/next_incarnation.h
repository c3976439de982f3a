#pragma once

#include <string>

#include "agent/job/job_record.h"
#include "base/clock.h"

namespace rankrun::agent {

// Decision after the death of an agent that had sent no goodbye.
struct NextIncarnation {
  bool starts = false;
  Duration pause{};
  // "starting again: restart 1 of 3", or why not. Empty if nobody asked for
  // restarts.
  std::string words;
  JobRecord record;      // of the next incarnation, if it starts
  int quick_deaths = 0;  // in a row
};

// Decides whether and when the next agent starts. `last` is the record that the
// dead agent left, `quick_deaths` that of the previous decision. Within the
// budget the next agent starts at once. Only agents that repeatedly die right
// after their start get pauses. Pure.
NextIncarnation DecideNextIncarnation(const JobRecord& last, int quick_deaths, Duration lived);

}  // namespace rankrun::agent

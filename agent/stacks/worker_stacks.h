#pragma once

#include <string>
#include <vector>

#include "agent/stacks/process_stacks.h"

namespace rankrun::agent {

constexpr size_t kMaxRecordFrames = 5;

// The stacks of a worker in its record.
struct WorkerStacks {
  std::vector<std::string> frames = {};  // five that matter, innermost first
  std::string note = {};                 // why there are none, or not all; empty: complete
  std::string text = {};                 // everything, until it is in the file
  std::string file = {};                 // with everything; empty: none

  bool operator==(const WorkerStacks&) const = default;
};

// Returns the part of a process's stacks that a record keeps.
WorkerStacks ForRecord(const ProcessStacks& stacks);

// Returns "read(/tmp/pipe) <- load_batch (data.py:31) <- main (train.py:88)" in lines that fit
// `columns`; each but the first begins with `indent`. The first has room for `used` columns
// less. Appends the note. Empty if there is nothing. Pure.
std::string StackLine(const WorkerStacks& stacks, size_t columns, size_t used,
                      const std::string& indent);

}  // namespace rankrun::agent

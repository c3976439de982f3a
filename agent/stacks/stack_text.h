#pragma once

#include <string>
#include <vector>

#include "agent/stacks/process_stacks.h"

namespace rankrun::agent {

// Returns a function's name for a line of a report: without the parameters and template
// arguments of C++. Pure, as all here.
std::string ShortFunction(const std::string& function);

// Returns whether a native frame is in the C or C++ library, whose functions a user calls but
// does not know inside.
bool IsRuntime(const StackFrame& frame);

// Returns the frames of a thread as a user of its language sees them, innermost first: native
// ones, and Python's in place of those of the interpreter.
std::vector<StackFrame> MergedFrames(const ProcessStacks& stacks, const ThreadStack& thread);

// Returns the five innermost frames of the main thread that a user knows: "read(/tmp/pipe)",
// "load_batch (data.py:31)". The first one stands for all frames of the C library; without
// frames it is the system call.
std::vector<std::string> FramesThatMatter(const ProcessStacks& stacks);

// Returns everything as text of several lines.
std::string FormatStacksText(const ProcessStacks& stacks);

}  // namespace rankrun::agent

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "comm/core/debug_level.h"

namespace rankrun::comm {

// Stack of the thread that has made a call. A value; empty unless ShowsStacks().
class CallStack {
 public:
  static CallStack IfShown() { return ShowsStacks() ? Here() : CallStack(); }

  bool empty() const { return frames_.empty(); }
  // Returns one line per frame, the innermost first, each behind a newline:
  // "#0 program main+0x12" or, without a name, "#0 program+0x1234" (for addr2line).
  std::string InWords() const;

 private:
  static CallStack Here();

  std::vector<void*> frames_;
};

// Adds the stack to an error because of different calls.
Error WithStack(Error error, const CallStack& stack);
inline Result<void> WithStack(Result<void> result, const CallStack& stack) {
  if (result || stack.empty()) return result;
  return WithStack(std::move(result).error(), stack);
}

}  // namespace rankrun::comm

#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace rankrun::test {

// Ends the process, as libFuzzer wants it, if something is `wrong`.
inline void ReportFinding(const std::string& wrong) {
  if (wrong.empty()) return;
  std::fprintf(stderr, "finding: %s\n", wrong.c_str());
  std::abort();
}

}  // namespace rankrun::test

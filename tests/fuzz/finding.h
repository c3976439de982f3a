#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace rankrun::test {

// Aborts the process, as libFuzzer expects for a finding, unless `wrong` is empty.
inline void ReportFinding(const std::string& wrong) {
  if (wrong.empty()) return;
  std::fprintf(stderr, "finding: %s\n", wrong.c_str());
  std::abort();
}

}  // namespace rankrun::test

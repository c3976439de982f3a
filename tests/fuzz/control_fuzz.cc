#include <cstddef>
#include <cstdint>

#include "tests/agent/control/control_check.h"
#include "tests/fuzz/finding.h"

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t* data,
                                                                             size_t size) {
  rankrun::test::ReportFinding(
      rankrun::agent::CheckControlInput({reinterpret_cast<const char*>(data), size}));
  return 0;
}

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/check_input.h"
#include "tests/fuzz/finding.h"

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t* data,
                                                                             size_t size) {
  using rankrun::test::CheckInput;
  rankrun::test::ReportFinding(CheckInput({reinterpret_cast<const char*>(data), size}));
  return 0;
}

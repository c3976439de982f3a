#include <cstddef>
#include <cstdint>

#include "tests/fuzz/finding.h"
#include "tests/store/wire/wire_check.h"

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t* data,
                                                                             size_t size) {
  rankrun::test::ReportFinding(
      rankrun::store::CheckWireInput({reinterpret_cast<const char*>(data), size}));
  return 0;
}

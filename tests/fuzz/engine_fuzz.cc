#include <cstddef>
#include <cstdint>

#include "tests/fuzz/finding.h"
#include "tests/store/engine/engine_history.h"

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t* data,
                                                                             size_t size) {
  rankrun::store::ByteChoices choices({reinterpret_cast<const char*>(data), size});
  rankrun::test::ReportFinding(rankrun::store::CheckEngineHistory(choices));
  return 0;
}

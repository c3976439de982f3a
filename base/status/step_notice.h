#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/status/status_page.h"

namespace rankrun {

// The last step that a worker has finished, between the header of its status page and the
// table of activities. A page whose worker knows no steps has none.
struct StepSlot {
  uint64_t ticks;  // time of the step
  uint64_t step;   // 1 more than its number; 0: none
};
constexpr size_t kStepSlotAt = 2048;
static_assert(sizeof(StatusPageHeader) <= kStepSlotAt);
static_assert(kStepSlotAt + sizeof(StepSlot) <= kActivityTableAt);

struct StepNotice {
  int64_t step;
  TimePoint at;  // of this step or of one that has just followed
};

// For the worker. Makes no system call. `step` is not negative.
// Thread: one at a time.
void WriteStep(const StatusPage& page, int64_t step);
// For the agent, also while the worker writes. Nothing if the worker has noted no step.
std::optional<StepNotice> ReadStep(const StatusPage& page);

}  // namespace rankrun

#include "base/status/step_notice.h"

#include <atomic>
#include <cstddef>

namespace rankrun {
namespace {

StepSlot& SlotOf(const StatusPage& page) {
  auto* table = reinterpret_cast<std::byte*>(&page.activities());
  return *reinterpret_cast<StepSlot*>(table - kActivityTableAt + kStepSlotAt);
}

}  // namespace

void WriteStep(const StatusPage& page, int64_t step) {
  StepSlot& slot = SlotOf(page);
  std::atomic_ref(slot.ticks).store(Ticks(), std::memory_order_relaxed);
  std::atomic_ref(slot.step).store(static_cast<uint64_t>(step) + 1, std::memory_order_release);
}

std::optional<StepNotice> ReadStep(const StatusPage& page) {
  StepSlot& slot = SlotOf(page);
  const uint64_t step = std::atomic_ref(slot.step).load(std::memory_order_acquire);
  const bool is_number = step > 0 && step <= uint64_t{INT64_MAX};  // a program may write anything
  if (!is_number) return std::nullopt;
  const uint64_t ticks = std::atomic_ref(slot.ticks).load(std::memory_order_relaxed);
  const TickClock clock = page.tick_clock();
  return StepNotice{.step = static_cast<int64_t>(step - 1),
                    .at = clock.now_time - clock.Since(ticks)};
}

}  // namespace rankrun

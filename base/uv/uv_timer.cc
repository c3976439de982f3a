#include "base/uv/uv_timer.h"

#include <uv.h>

#include "base/uv/uv_loop.h"

namespace rankrun {

Timer::Timer(Loop& loop, std::function<void()> fire)
    : loop_(loop), fire_(std::move(fire)), handle_(new uv_timer_t{}) {
  uv_timer_init(loop.raw(), handle_.get());  // cannot fail
  handle_->data = this;
}

void Timer::Start(std::chrono::nanoseconds delay) {
  loop_.AssertOnLoop();
  uint64_t delay_ms = 0;
  if (delay > std::chrono::nanoseconds::zero()) {
    // The loop counts whole milliseconds since its last reading of the clock.
    // The extra millisecond replaces the fraction that it dropped.
    uv_update_time(loop_.raw());
    delay_ms =
        static_cast<uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(delay).count()) + 1;
  }
  uv_timer_start(
      handle_.get(),
      [](uv_timer_t* handle) {
        if (auto* self = static_cast<Timer*>(handle->data)) self->fire_();
      },
      delay_ms, 0);
}

void Timer::Stop() { uv_timer_stop(handle_.get()); }

}  // namespace rankrun

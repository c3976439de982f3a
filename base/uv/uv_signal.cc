#include "base/uv/uv_signal.h"

#include <uv.h>

#include "base/uv/uv_loop.h"

namespace rankrun {

Signal::Signal(std::function<void()> caught) : caught_(std::move(caught)) {}

Result<std::unique_ptr<Signal>> Signal::Catch(Loop& loop, int signal_number,
                                              std::function<void()> caught) {
  loop.AssertOnLoop();
  std::unique_ptr<Signal> signal(new Signal(std::move(caught)));
  signal->handle_.reset(new uv_signal_t{});
  uv_signal_init(loop.raw(), signal->handle_.get());  // cannot fail once the loop is up
  signal->handle_->data = signal.get();
  int status = uv_signal_start(
      signal->handle_.get(),
      [](uv_signal_t* handle, int) {
        if (auto* self = static_cast<Signal*>(handle->data)) self->caught_();
      },
      signal_number);
  if (status != 0) return SystemError("catch a signal", -status);
  return signal;
}

}  // namespace rankrun

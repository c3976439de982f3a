#include "base/uv/uv_wakeup.h"

#include <uv.h>

#include "base/check.h"
#include "base/uv/uv_loop.h"

namespace rankrun {

Wakeup::Wakeup(Loop& loop, std::function<void()> woken) : woken_(std::move(woken)) {
  auto handle = std::make_unique<uv_async_t>();
  int status = uv_async_init(loop.raw(), handle.get(), [](uv_async_t* async) {
    if (auto* self = static_cast<Wakeup*>(async->data)) self->woken_();
  });
  RANKRUN_CHECK(status == 0, "cannot create a wake-up of the event loop");
  handle_.reset(handle.release());
  handle_->data = this;
}

void Wakeup::Wake() { uv_async_send(handle_.get()); }

}  // namespace rankrun

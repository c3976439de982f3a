#pragma once

#include <memory>

struct uv_async_s;
struct uv_poll_s;
struct uv_prepare_s;
struct uv_signal_s;
struct uv_tcp_s;
struct uv_timer_s;

namespace rankrun {

// Closes an initialised libuv handle. libuv may use the handle until its close
// callback has run, so that callback frees the memory. `data` is cleared at
// once, so that a queued callback finds no owner.
struct CloseThenDelete {
  void operator()(uv_async_s* handle) const;
  void operator()(uv_poll_s* handle) const;
  void operator()(uv_prepare_s* handle) const;
  void operator()(uv_signal_s* handle) const;
  void operator()(uv_tcp_s* handle) const;
  void operator()(uv_timer_s* handle) const;
};

template <typename H>
using UvHandle = std::unique_ptr<H, CloseThenDelete>;

}  // namespace rankrun

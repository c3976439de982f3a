#include "base/uv/uv_handle.h"

#include <uv.h>

namespace rankrun {
namespace {

template <typename H>
void Close(H* handle) {
  handle->data = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(handle),
           [](uv_handle_t* closed) { delete reinterpret_cast<H*>(closed); });
}

}  // namespace

void CloseThenDelete::operator()(uv_async_s* handle) const { Close(handle); }
void CloseThenDelete::operator()(uv_poll_s* handle) const { Close(handle); }
void CloseThenDelete::operator()(uv_prepare_s* handle) const { Close(handle); }
void CloseThenDelete::operator()(uv_signal_s* handle) const { Close(handle); }
void CloseThenDelete::operator()(uv_tcp_s* handle) const { Close(handle); }
void CloseThenDelete::operator()(uv_timer_s* handle) const { Close(handle); }

}  // namespace rankrun

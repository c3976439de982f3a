#pragma once

#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "base/mutex.h"

namespace rankrun::comm::gloo {

// Thread that aborts waits for sends to a lost peer, because Gloo never reports
// sends that were in progress when the connection broke.
// Thread: the waiting thread only.
class SendAborter {
 public:
  // `is_gone` is called every few milliseconds in the thread.
  explicit SendAborter(std::function<bool(int peer)> is_gone);
  SendAborter(const SendAborter&) = delete;
  SendAborter& operator=(const SendAborter&) = delete;
  ~SendAborter();

  // Waits as Gloo's waitSend. Returns whether the data was sent; false: the
  // peer is lost.
  bool Wait(::gloo::transport::UnboundBuffer& buffer, int peer, std::chrono::milliseconds timeout);

 private:
  struct Waiting {
    ::gloo::transport::UnboundBuffer* buffer;
    int peer;
  };
  class WaitingScope;
  void Watch();

  const std::function<bool(int peer)> is_gone_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<Waiting> waiting_ GUARDED_BY(mutex_);
  bool ends_ GUARDED_BY(mutex_) = false;
  std::optional<std::thread> thread_;  // no value: the system had no thread left
};

}  // namespace rankrun::comm::gloo

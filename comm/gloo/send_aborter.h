#pragma once

#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace rankrun::comm {

// Ends waits for sends to a peer that is gone, in a thread of its own: what Gloo
// was writing when the connection broke it tells nobody of.
// Thread: one, which waits.
class SendAborter {
 public:
  // `is_gone` is asked every few milliseconds, in the thread.
  explicit SendAborter(std::function<bool(int peer)> is_gone);
  SendAborter(const SendAborter&) = delete;
  SendAborter& operator=(const SendAborter&) = delete;
  ~SendAborter();

  // Whether it was sent; false: the peer is gone. Else as Gloo's wait.
  bool Wait(::gloo::transport::UnboundBuffer& buffer, int peer, std::chrono::milliseconds timeout);

 private:
  struct Waiting {
    ::gloo::transport::UnboundBuffer* buffer;
    int peer;
  };
  class Shown;
  void Watch();

  const std::function<bool(int peer)> is_gone_;
  std::mutex mutex_;  // guards the next three
  std::condition_variable changed_;
  std::optional<Waiting> waiting_;
  bool ends_ = false;
  std::optional<std::thread> thread_;  // nothing: there is none to be had
};

}  // namespace rankrun::comm

#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/net/socket_address.h"
#include "base/result.h"
#include "base/uv/uv_handle.h"

namespace rankrun {

class Loop;

// One open TCP connection. Input arrives by callback, output leaves by Write.
// Thread: loop.  Lifetime: may not end inside its own callbacks (record the end
// and destroy it from a 0 ms Timer). No callback runs after its end; output not
// yet sent is then discarded.
class Stream {
 public:
  struct Callbacks {
    // Memory that on_data will use first, or null. It is prefetched into the
    // cache while the kernel reads, which matters with thousands of streams.
    const void* needed_by_on_data = nullptr;
    // `bytes` is valid during the call only.
    std::function<void(std::span<const char> bytes)> on_data;
    // Called once: the peer closed (no error) or the connection broke.
    std::function<void(std::optional<Error>)> on_end;
    // Called when everything written so far has gone to the kernel. May be
    // empty.
    std::function<void()> on_drained;
  };

  // Takes a connected handle from a Listener or a Connector.
  Stream(UvHandle<uv_tcp_s> handle, const SocketAddress& peer);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Begins to deliver input. A new owner calls it again, but never inside a
  // callback.
  void Start(Callbacks callbacks);

  // Queues `bytes` and sends as much as the kernel takes at once. Reports
  // errors later: on_end is called for a broken connection. Leaves `bytes`
  // empty, and with its memory if the kernel took all.
  void Write(std::string& bytes);
  void Write(std::string&& bytes) { Write(bytes); }

  // Bytes of queued writes, each counted until the kernel has taken all of it.
  // For back-pressure and memory accounting.
  size_t queued_bytes() const { return queued_bytes_; }

  void PauseReading();
  void ResumeReading();

  // Reads and drops input that nobody wants. Call this before the destructor: a
  // socket closed with unread input sends a reset, which destroys data that the
  // peer has not read yet.
  void DiscardInput();

  const SocketAddress& peer() const { return peer_; }
  // Returns the local address of the connection. Errors: kSystem.
  Result<SocketAddress> LocalAddress() const;
  // Returns whether both directions are open, as the kernel knows it now: on_end comes only while
  // the stream reads.
  bool IsEstablished() const;

 private:
  struct Trampolines;  // the C callbacks, in uv_stream.cc

  void End(std::optional<Error> error);

  // Members that each read and write uses come first.
  UvHandle<uv_tcp_s> handle_;
  bool ended_ = false;
  size_t queued_bytes_ = 0;
  Callbacks callbacks_;
  SocketAddress peer_;
};

}  // namespace rankrun

#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "base/socket_address.h"
#include "base/uv_handle.h"

namespace rankrun {

class Loop;

// One open TCP connection: bytes in by callback, bytes out by Write.
// Thread: loop.  Lifetime: may not end inside one of its own callbacks (record
// it and drop it from a 0 ms Timer). No callback comes after its end; what was
// written and not yet sent is then discarded.
class Stream {
 public:
  struct Callbacks {
    // What on_data will look at first, if anything: it is fetched into the
    // cache while the kernel reads, which counts with thousands of streams.
    const void* needed_by_on_data = nullptr;
    // `bytes` is valid during the call only.
    std::function<void(std::span<const char> bytes)> on_data;
    // Called once: the peer closed (no error) or the connection broke.
    std::function<void(std::optional<Error>)> on_end;
    // Everything written so far has gone to the kernel. May be empty.
    std::function<void()> on_drained;
  };

  // Takes a connected handle from a Listener or a Connector.
  Stream(UvHandle<uv_tcp_s> handle, const SocketAddress& peer);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Begins to deliver, or goes on to a new owner: then not to be called inside
  // a callback.
  void Start(Callbacks callbacks);

  // Queues `bytes` and sends as much as the kernel takes at once. Nothing is
  // lost by errors in between: a broken connection is told by on_end. Leaves
  // `bytes` empty, with its memory if the kernel took all.
  void Write(std::string& bytes);
  void Write(std::string&& bytes) { Write(bytes); }

  // What queued writes take, each until the kernel has taken all of it: for
  // back-pressure and for accounts of memory.
  size_t queued_bytes() const { return queued_bytes_; }

  void PauseReading();
  void ResumeReading();

  // Reads away what has come and nobody will want, before the end of this
  // object: closed with input unread, the kernel tells the peer of a reset,
  // which also destroys what was sent to it and not yet read.
  void DiscardInput();

  const SocketAddress& peer() const { return peer_; }
  // By which address of this host the peer is reached. Errors: kSystem.
  Result<SocketAddress> LocalAddress() const;

 private:
  struct Trampolines;  // the C callbacks, in uv_stream.cc

  void End(std::optional<Error> error);

  // What each read and write needs comes first.
  UvHandle<uv_tcp_s> handle_;
  bool ended_ = false;
  size_t queued_bytes_ = 0;
  Callbacks callbacks_;
  SocketAddress peer_;
};

}  // namespace rankrun

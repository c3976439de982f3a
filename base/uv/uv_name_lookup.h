#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/net/socket_address.h"
#include "base/result.h"
#include "base/uv/uv_timer.h"

namespace rankrun {

class Loop;

// Looks up the addresses of a host without blocking the loop; a numeric address
// needs no look-up. The resolver runs in libuv's pool and may take half of it.
// Thread: loop.  Lifetime: may not end inside `on_done`. Calls `on_done` once,
// after the constructor has returned, unless this object ends before; the pool
// may then still ask the resolver.
class NameLookup {
 public:
  using OnDone = std::function<void(Result<std::vector<SocketAddress>>)>;

  // Errors of `on_done`: kNotFound if the name has no address, kSystem;
  // "look up <host>: <cause>".
  NameLookup(Loop& loop, const std::string& host, uint16_t port, OnDone on_done);
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;
  ~NameLookup();

 private:
  struct Request;

  OnDone on_done_;
  std::optional<Error> failure_;
  Timer later_;                 // reports an immediate failure
  Request* request_ = nullptr;  // owned by libuv until its callback
};

}  // namespace rankrun

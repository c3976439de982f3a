#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/socket_address.h"
#include "base/uv_timer.h"

namespace rankrun {

class Loop;

// Looks up the addresses of a host, or takes a numeric address as it is, without
// blocking the loop: the resolver is asked in libuv's pool, of which it may take
// half. Thread: loop.  Lifetime: may not end inside `on_done`, which is called
// once, later, unless it ends before; the pool may then still ask the resolver.
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
  Timer later_;                 // for what fails at once
  Request* request_ = nullptr;  // owned by libuv until its callback
};

}  // namespace rankrun

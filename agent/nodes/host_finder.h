#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/net/socket_address.h"
#include "base/result.h"
#include "base/uv/uv_name_lookup.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// Determines without blocking whether a host is this one. Repeats the look-up
// until the name has an address.
// Thread: loop.  Lifetime: may not end inside `on_found`, which is called once.
class HostFinder {
 public:
  HostFinder(Loop& loop, std::string host, std::function<void(bool is_here)> on_found);
  HostFinder(const HostFinder&) = delete;
  HostFinder& operator=(const HostFinder&) = delete;

 private:
  void LookUp();
  void OnLookedUp(const Result<std::vector<SocketAddress>>& found);

  Loop& loop_;
  const std::string host_;
  const std::function<void(bool)> on_found_;
  std::optional<bool> is_here_;
  std::unique_ptr<NameLookup> lookup_;
  Timer next_;
};

}  // namespace rankrun::agent

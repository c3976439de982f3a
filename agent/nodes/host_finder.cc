#include "agent/nodes/host_finder.h"

#include <chrono>
#include <utility>

#include "base/net/network_interface.h"
#include "base/uv/uv_loop.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::milliseconds kPause{500};

}  // namespace

HostFinder::HostFinder(Loop& loop, std::string host, std::function<void(bool is_here)> on_found)
    : loop_(loop), host_(std::move(host)), on_found_(std::move(on_found)), next_(loop, [this] {
        if (!is_here_) return LookUp();
        on_found_(*is_here_);
      }) {
  next_.Start(kPause.zero());
}

void HostFinder::LookUp() {
  lookup_ = std::make_unique<NameLookup>(
      loop_, host_, 0,
      [this](const Result<std::vector<SocketAddress>>& found) { OnLookedUp(found); });
}

// Continues from the timer, because a look-up may not end inside its callback.
void HostFinder::OnLookedUp(const Result<std::vector<SocketAddress>>& found) {
  if (found) is_here_ = IsThisHost(*found);
  next_.Start(found ? kPause.zero() : kPause);
}

}  // namespace rankrun::agent

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/engine/request.h"

namespace rankrun::store {

// Key of a server's statistics: CHECK returns that it exists, GET returns the
// JSON text. Clients prefix their users' keys with "/", so no user's key has
// this name. PyTorch's servers do not have it.
constexpr std::string_view kStatsKey = "rankrun/stats";

// Reason for which a server closed a connection.
enum class Ending { kProtocol, kLimit, kStalled, kRefused };

// Indexed by Request::index().
using RequestCounts = std::array<uint64_t, kRequestKinds>;
// Indexed by Ending.
using EndingCounts = std::array<uint64_t, 4>;

// Contents and activity of a server.
struct ServerStats {
  // A name with waits.
  struct Waited {
    std::string name;
    size_t waiters = 0;                   // WAITs and BARRIERs
    std::vector<std::string> peers = {};  // addresses of the first few waiters
  };

  std::chrono::duration<double> uptime{};
  size_t keys = 0;
  size_t queues = 0;
  size_t bytes = 0;
  size_t largest_bytes = 0;
  size_t connections = 0;
  size_t largest_connections = 0;
  size_t traffic_bytes = 0;
  RequestCounts requests{};
  EndingCounts endings{};
  size_t waiters = 0;           // WAITs and BARRIERs that are not fulfilled
  std::vector<Waited> waits{};  // sorted by waiters, most first; truncated
  size_t waits_omitted = 0;     // number of names left out of `waits`
};

std::string ToJson(const ServerStats& stats);

}  // namespace rankrun::store

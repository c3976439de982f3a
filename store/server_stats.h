#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/request.h"

namespace rankrun::store {

// Where a server tells about itself: CHECK says that it is there, GET returns
// the JSON text. Clients put a "/" before their users' keys, so no user's key
// has this name; PyTorch's servers do not have it.
constexpr std::string_view kStatsKey = "rankrun/stats";

// Why a server closed a connection.
enum class Ending { kProtocol, kLimit, kStalled, kRefused };

// By Request::index().
using RequestCounts = std::array<uint64_t, kRequestKinds>;
// By Ending.
using EndingCounts = std::array<uint64_t, 4>;

// What a server holds and has done.
struct ServerStats {
  // A name that is waited for.
  struct Waited {
    std::string name;
    size_t waiters = 0;                   // WAITs and BARRIERs
    std::vector<std::string> peers = {};  // of whom, the first few
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
  std::vector<Waited> waits{};  // those most waited for first, some names only
  size_t waits_omitted = 0;     // names that are not in `waits`
};

std::string ToJson(const ServerStats& stats);

}  // namespace rankrun::store

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rankrun::agent {

// Place at which an agent serves its metrics.
struct MetricsAddress {
  std::string host = "127.0.0.1";
  uint16_t port = 0;                    // 0: chosen by the kernel
  std::string path = {};                // of a UNIX socket; empty: host and port
  std::vector<std::string> names = {};  // of this machine, by which clients may ask
  bool is_open = false;                 // for all users of this host, and by any name
};

}  // namespace rankrun::agent

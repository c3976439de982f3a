#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

// TCP connections of this host, from the kernel's socket diagnosis.
namespace rankrun::agent {

// One end of a connection. IPv4 addresses are mapped to IPv6.
struct ConnectionEnd {
  std::array<uint8_t, 16> address{};
  uint16_t port = 0;
};

// Returns a number that is the same at both ends, and never 0. Pure.
uint64_t ConnectionId(const ConnectionEnd& a, const ConnectionEnd& b);

struct TcpConnection {
  uint64_t id = 0;
  uint16_t local_port = 0;
  uint16_t remote_port = 0;
  Duration since_received{};    // since the latest data, or since it was opened
  uint64_t received_bytes = 0;  // of data
};
using ConnectionsByInode = std::map<uint64_t, TcpConnection>;

// Reads all connections of this network namespace. Returns nothing if the kernel does not show
// them. Thread: any, not the loop's.
std::optional<ConnectionsByInode> ReadConnections();

// Returns the inodes of the sockets of a process, by descriptor. Thread: any, not the loop's.
std::map<int, uint64_t> SocketsOf(pid_t pid);

}  // namespace rankrun::agent

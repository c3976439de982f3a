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
  bool operator==(const ConnectionEnd&) const = default;
};

// Returns "10.0.0.1:29500", "[fe80::1]:29500". Pure.
std::string EndInWords(const ConnectionEnd& end);

// Returns a number that is the same at both ends, and never 0. Pure.
uint64_t ConnectionId(const ConnectionEnd& a, const ConnectionEnd& b);

// States of the kernel, as bits of a set.
constexpr uint32_t kEstablished = 1U << 1U, kSynSent = 1U << 2U, kCloseWait = 1U << 8U,
                   kListening = 1U << 10U;
constexpr uint32_t kConnected = kEstablished | kCloseWait;

struct TcpConnection {
  uint64_t id = 0;
  uint32_t state = kEstablished;
  ConnectionEnd local{};
  ConnectionEnd remote{};
  Duration since_received{};    // since the latest data, or since it was opened
  uint64_t received_bytes = 0;  // of data
};
using ConnectionsByInode = std::map<uint64_t, TcpConnection>;

// Reads all connections of this network namespace that are in one of `states`. Returns nothing if
// the kernel does not show them. Thread: any, not the loop's.
std::optional<ConnectionsByInode> ReadConnections(uint32_t states = kConnected);

// Returns the inodes of the sockets of a process, by descriptor. Thread: any, not the loop's.
std::map<int, uint64_t> SocketsOf(pid_t pid);

}  // namespace rankrun::agent

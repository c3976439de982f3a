#include "agent/health/connections.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/fd.h"
#include "base/fnv.h"

namespace rankrun::agent {
namespace {

struct Request {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

// Returns false if the kernel does not take the request.
bool AskForAll(int netlink, uint8_t family, uint32_t states) {
  Request request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.sdiag_family = family;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_ext = 1U << (INET_DIAG_INFO - 1);
  request.body.idiag_states = states;
  return send(netlink, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request);
}

ConnectionEnd EndOf(uint8_t family, const __be32 (&address)[4], __be16 port) {
  ConnectionEnd end{.port = ntohs(port)};
  if (family == AF_INET) {
    end.address[10] = end.address[11] = 0xFF;
    std::memcpy(end.address.data() + 12, address, 4);
  } else {
    std::memcpy(end.address.data(), address, 16);
  }
  return end;
}

// Copies as much of the kernel's structure as this kernel has.
tcp_info InfoIn(const char* attributes, size_t size) {
  tcp_info info{};
  while (size >= sizeof(rtattr)) {
    rtattr header;
    std::memcpy(&header, attributes, sizeof header);
    if (header.rta_len < sizeof header || header.rta_len > size) break;
    if (header.rta_type == INET_DIAG_INFO) {
      std::memcpy(&info, attributes + RTA_LENGTH(0),
                  std::min(sizeof info, size_t{header.rta_len} - RTA_LENGTH(0)));
    }
    const size_t step = std::min(size, size_t{RTA_ALIGN(header.rta_len)});
    attributes += step;
    size -= step;
  }
  return info;
}

void AddConnection(const char* payload, size_t size, ConnectionsByInode& connections) {
  inet_diag_msg found;
  if (size < sizeof found) return;
  std::memcpy(&found, payload, sizeof found);
  const tcp_info info = InfoIn(payload + sizeof found, size - sizeof found);
  const auto local = EndOf(found.idiag_family, found.id.idiag_src, found.id.idiag_sport);
  const auto remote = EndOf(found.idiag_family, found.id.idiag_dst, found.id.idiag_dport);
  connections[found.idiag_inode] = {
      .id = ConnectionId(local, remote),
      .state = 1U << found.idiag_state,
      .local = local,
      .remote = remote,
      .since_received = std::chrono::milliseconds(info.tcpi_last_data_recv),
      .received_bytes = info.tcpi_bytes_received};
}

enum class Part { kMore, kLast, kFailed };

Part TakeMessages(const char* bytes, size_t size, ConnectionsByInode& connections) {
  while (size >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, bytes, sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > size) return Part::kFailed;
    if (header.nlmsg_type == NLMSG_DONE) return Part::kLast;
    if (header.nlmsg_type == NLMSG_ERROR) return Part::kFailed;
    AddConnection(bytes + NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN, connections);
    const size_t step = std::min(size, size_t{NLMSG_ALIGN(header.nlmsg_len)});
    bytes += step;
    size -= step;
  }
  return Part::kMore;
}

// The kernel makes each part of its answer when it is read, so that no read has to wait.
bool ReadFamily(int netlink, uint8_t family, uint32_t states, ConnectionsByInode& connections) {
  if (!AskForAll(netlink, family, states)) return false;
  std::array<char, 32 * 1024> bytes;
  Part part = Part::kMore;
  while (part == Part::kMore) {
    const ssize_t size = recv(netlink, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size <= 0) return false;
    part = TakeMessages(bytes.data(), static_cast<size_t>(size), connections);
  }
  return part == Part::kLast;
}

}  // namespace

std::string EndInWords(const ConnectionEnd& end) {
  constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  const bool is_v4 = std::equal(kMapped.begin(), kMapped.end(), end.address.begin());
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_v4) {
    inet_ntop(AF_INET, end.address.data() + kMapped.size(), text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(end.port);
  }
  inet_ntop(AF_INET6, end.address.data(), text.data(), text.size());
  return "[" + std::string(text.data()) + "]:" + std::to_string(end.port);
}

uint64_t ConnectionId(const ConnectionEnd& a, const ConnectionEnd& b) {
  Fnv hash;
  const bool is_ordered = std::tie(a.address, a.port) <= std::tie(b.address, b.port);
  for (const ConnectionEnd& end : {is_ordered ? a : b, is_ordered ? b : a}) {
    for (uint8_t byte : end.address) hash.Add(byte);
    hash.Add(static_cast<uint8_t>(end.port >> 8U));
    hash.Add(static_cast<uint8_t>(end.port & 0xFFU));
  }
  return std::max<uint64_t>(hash.hash(), 1);
}

std::optional<ConnectionsByInode> ReadConnections(uint32_t states) {
  Fd netlink(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  ConnectionsByInode connections;
  if (!netlink || !ReadFamily(netlink.get(), AF_INET, states, connections)) return std::nullopt;
  ReadFamily(netlink.get(), AF_INET6, states, connections);  // a kernel may have no IPv6
  return connections;
}

std::map<int, uint64_t> SocketsOf(pid_t pid) {
  std::map<int, uint64_t> sockets;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
  while (entries != nullptr) {
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) break;
    std::array<char, 64> link{};
    const std::string path = folder + "/" + entry->d_name;
    const ssize_t size = readlink(path.c_str(), link.data(), link.size());
    const std::string_view target(link.data(), size > 0 ? static_cast<size_t>(size) : 0);
    constexpr std::string_view kPrefix = "socket:[";
    if (!target.starts_with(kPrefix) || !target.ends_with(']')) continue;
    sockets[std::atoi(entry->d_name)] = std::strtoull(target.data() + kPrefix.size(), nullptr, 10);
  }
  return sockets;
}

}  // namespace rankrun::agent

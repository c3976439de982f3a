#include "base/net/peer_user.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "base/net/network_interface.h"

namespace rankrun {
namespace {

constexpr const char* kNoConnection =
    "no program there has this connection: it has ended, or is of another network namespace, or a "
    "gateway has changed a port";

struct Request {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

// Sockets for both families store their connections over IPv4 as such.
bool IsV4(const AddressBytes& bytes) {
  constexpr AddressBytes kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::equal(bytes.begin(), bytes.begin() + 12, kMapped.begin());
}

void CopyAddress(const SocketAddress& address, __be32 (&field)[4]) {
  AddressBytes bytes = address.Bytes();
  size_t skipped = IsV4(bytes) ? 12 : 0;
  std::memcpy(field, bytes.data() + skipped, bytes.size() - skipped);
}

Request RequestFor(const SocketAddress& near, const SocketAddress& far) {
  Request request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_family = IsV4(near.Bytes()) ? AF_INET : AF_INET6;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0U;
  inet_diag_sockid& id = request.body.id;
  id.idiag_sport = htons(near.port());
  id.idiag_dport = htons(far.port());
  CopyAddress(near, id.idiag_src);
  CopyAddress(far, id.idiag_dst);
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (near.family() == AF_INET6) {
    id.idiag_if = reinterpret_cast<const sockaddr_in6*>(near.raw())->sin6_scope_id;
  }
  return request;
}

// Receives the answer to a request for all sockets of a kind. The kernel writes each part when it
// is received.
std::vector<inet_diag_msg> ReceiveDump(int netlink) {
  std::vector<inet_diag_msg> all;
  alignas(nlmsghdr) std::array<char, 32768> part;
  for (;;) {
    ssize_t size = recv(netlink, part.data(), part.size(), MSG_DONTWAIT);
    if (size <= 0) return all;
    auto left = static_cast<size_t>(size);
    for (auto* header = reinterpret_cast<nlmsghdr*>(part.data()); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY) return all;  // the end, or an error
      std::memcpy(&all.emplace_back(), NLMSG_DATA(header), sizeof(inet_diag_msg));
    }
  }
}

std::set<AddressBytes> OwnAddresses() {
  std::set<AddressBytes> all;
  auto own = InterfaceAddresses();
  if (!own) return all;
  for (const std::string& text : *own) {
    auto address = SocketAddress::FromNumeric(text, 0);
    if (address) all.insert(address->Bytes());
  }
  return all;
}

bool IsOfThisHost(const SocketAddress& peer) {
  return peer.is_loopback() || OwnAddresses().contains(peer.Bytes());
}

}  // namespace

bool IsOwnUserOrRoot(uid_t user) { return user == geteuid() || user == 0; }

void PeerUsers::Open() {
  if (netlink_) return;
  netlink_.Reset(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
}

PeerUser PeerUsers::Find(const SocketAddress& local, const SocketAddress& peer) {
  Open();
  auto end = LookUp(peer, local);
  if (end && end->has_user) return {.kind = PeerUser::Kind::kKnown, .uid = end->uid};
  bool was_closed = end && end->is_connection;
  // A reset removes both ends. The kernel then shows the listener instead of this
  // end, if it shows sockets.
  if (!was_closed && !(IsOfThisHost(peer) && LookUp(local, peer))) return {};
  return {.kind = PeerUser::Kind::kGone};
}

std::string PeerUsers::ReasonToRefuse(const SocketAddress& local, const SocketAddress& peer,
                                      const std::function<bool(uid_t)>& admits) {
  return ReasonToRefuse(Find(local, peer), admits);
}

std::string PeerUsers::ReasonToRefuse(const PeerUser& user,
                                      const std::function<bool(uid_t)>& admits) {
  if (user.kind == PeerUser::Kind::kGone) {
    return "its socket on this host is closed, or the kernel does not show it";
  }
  bool is_foreign = user.kind == PeerUser::Kind::kKnown && !admits(user.uid);
  return is_foreign ? "it belongs to user " + std::to_string(user.uid) + " of this host" : "";
}

struct PeerUsers::Host {
  std::optional<bool> shows_sockets;
  std::optional<uint16_t> remote_port;        // of `users_at`
  std::multimap<uint16_t, uid_t> users_at{};  // of connections to remote_port, by own port
};

std::vector<PeerUsers::Reason> PeerUsers::ReasonsToRefuse(
    const std::vector<Ends>& connections, const std::function<bool(uid_t)>& admits) {
  Open();
  Host host;
  std::vector<Reason> reasons;
  for (const Ends& ends : connections) reasons.push_back(ReasonToRefuseAt(ends, host, admits));
  return reasons;
}

PeerUsers::Reason PeerUsers::ReasonToRefuseAt(const Ends& ends, Host& host,
                                              const std::function<bool(uid_t)>& admits) {
  std::vector<uid_t> users;
  auto end = LookUp(ends.client, ends.server);
  if (end && end->is_connection) {
    if (!end->has_user) return {"its socket is closed"};
    users.push_back(end->uid);
  } else {
    // A gateway has translated the address of the client, or that of the store, such as that of a
    // Service of Kubernetes.
    users = UsersByPorts(ends, host);
    if (users.empty()) {
      if (!host.shows_sockets) host.shows_sockets = ShowsSockets();
      return {*host.shows_sockets ? kNoConnection : ""};
    }
  }
  auto stranger = std::ranges::find_if_not(users, admits);
  if (stranger == users.end()) return {};
  return {"it belongs to user " + std::to_string(*stranger), /*is_of_user=*/true};
}

// Returns the users of all connections with both ports of this one. All connections are read at
// most once for many clients, as they may be many.
std::vector<uid_t> PeerUsers::UsersByPorts(const Ends& ends, Host& host) {
  if (host.remote_port != ends.server.port()) {
    host.remote_port = ends.server.port();
    host.users_at.clear();
    for (uint8_t family : {uint8_t{AF_INET}, uint8_t{AF_INET6}}) {
      Request request = RequestFor(ends.server.WithPort(0), ends.server);
      request.header.nlmsg_flags |= NLM_F_DUMP;
      request.body.sdiag_family = family;
      request.body.idiag_states = 1U << TCP_ESTABLISHED;
      if (send(netlink_.get(), &request, sizeof request, 0) < 0) continue;
      for (const inet_diag_msg& found : ReceiveDump(netlink_.get())) {
        // A kernel that takes no ports for a dump shows all sockets.
        bool counts = found.id.idiag_dport == request.body.id.idiag_dport && found.idiag_inode != 0;
        if (counts) host.users_at.emplace(ntohs(found.id.idiag_sport), found.idiag_uid);
      }
    }
  }
  std::vector<uid_t> users;
  auto [begin, end] = host.users_at.equal_range(ends.client.port());
  for (auto at = begin; at != end; ++at) users.push_back(at->second);
  return users;
}

// Returns whether the kernel shows a socket that certainly exists.
bool PeerUsers::ShowsSockets() {
  SocketAddress any = *SocketAddress::FromNumeric("127.0.0.1", 0);
  Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(listener.get(), any.raw(), any.raw_size()) != 0) return true;
  if (listen(listener.get(), 1) != 0) return true;
  auto own = SocketAddress::LocalOf(listener.get());
  return !own || LookUp(*own, any.WithPort(1)).has_value();
}

// Returns what the kernel reports about the socket at `near` that is connected
// to `far`; nothing if there is none in this network namespace.
std::optional<PeerUsers::Entry> PeerUsers::LookUp(const SocketAddress& near,
                                                  const SocketAddress& far) {
  Request request = RequestFor(near, far);
  if (send(netlink_.get(), &request, sizeof request, 0) < 0) return std::nullopt;
  alignas(nlmsghdr) std::array<char, 4096> answer;
  ssize_t size = recv(netlink_.get(), answer.data(), answer.size(), MSG_DONTWAIT);
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg)))) return std::nullopt;
  const auto& header = *reinterpret_cast<const nlmsghdr*>(answer.data());
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  inet_diag_msg found;
  std::memcpy(&found, answer.data() + NLMSG_HDRLEN, sizeof found);
  // A closed socket has no inode; the kernel shows user 0 for it.
  bool is_connection = found.id.idiag_dport == request.body.id.idiag_dport;
  return Entry{
      .is_connection = is_connection,
      .has_user = is_connection && found.idiag_state == TCP_ESTABLISHED && found.idiag_inode != 0,
      .uid = found.idiag_uid};
}

}  // namespace rankrun

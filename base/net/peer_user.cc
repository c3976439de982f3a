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

#include "base/net/network_interface.h"

namespace rankrun {
namespace {

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

bool IsOfThisHost(const SocketAddress& peer) {
  if (peer.is_loopback()) return true;
  auto own = InterfaceAddresses();
  return own && std::ranges::any_of(*own, [&](const std::string& text) {
           auto address = SocketAddress::FromNumeric(text, 0);
           return address && address->Bytes() == peer.Bytes();
         });
}

}  // namespace

bool IsOwnUserOrRoot(uid_t user) { return user == geteuid() || user == 0; }

PeerUser PeerUsers::Find(const SocketAddress& local, const SocketAddress& peer) {
  if (!netlink_) {
    netlink_.Reset(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  }
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
  PeerUser user = Find(local, peer);
  if (user.kind == PeerUser::Kind::kGone) {
    return "its socket on this host is closed, or the kernel does not show it";
  }
  bool is_foreign = user.kind == PeerUser::Kind::kKnown && !admits(user.uid);
  return is_foreign ? "it belongs to user " + std::to_string(user.uid) + " of this host" : "";
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

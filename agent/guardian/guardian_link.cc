#include "agent/guardian/guardian_link.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace rankrun::agent {
namespace {

enum class PacketKind : int {
  kSignal,
  kGoodbye,
  kEndSignals,
  kHeartbeat,
  kStartDebugger,
  kEndDebugger,
  kDebuggerReport,
  kLivenessSocket
};

// Wire format. A plain struct suffices because both ends are one program,
// forked.
struct Packet {
  PacketKind kind;
  int first;
  int second;
};

// Control data that holds one descriptor.
union DescriptorBuffer {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

bool SendMessage(int fd, const msghdr& message) {
  ssize_t sent;
  do {
    sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

void SendPacket(int fd, Packet packet) {
  iovec bytes{&packet, sizeof packet};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  SendMessage(fd, message);
}

// Receives a packet, and the descriptor that may come with it. Returns the result of
// recvmsg.
ssize_t ReceivePacket(int fd, Packet& packet, Fd& descriptor) {
  iovec bytes{&packet, sizeof packet};
  DescriptorBuffer buffer{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = &buffer;
  message.msg_controllen = sizeof buffer;
  ssize_t count;
  do {
    count = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // ECONNRESET: the other side died with unread messages. The kernel reports
    // this once, before the last messages of that side.
  } while (count < 0 && (errno == EINTR || errno == ECONNRESET));
  const cmsghdr* control = count < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (control != nullptr && control->cmsg_type == SCM_RIGHTS) {
    int received;
    std::memcpy(&received, CMSG_DATA(control), sizeof received);
    descriptor.Reset(received);
  }
  return count;
}

}  // namespace

Result<std::pair<GuardianLink, GuardianLink>> GuardianLink::CreatePair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return SystemError("create the guardian's socket", errno);
  }
  return std::pair(GuardianLink(Fd(fds[0])), GuardianLink(Fd(fds[1])));
}

void GuardianLink::Send(SignalNotice notice) {
  SendPacket(fd_.get(), {PacketKind::kSignal, notice.signal_number, notice.sender});
}

void GuardianLink::Send(Goodbye goodbye) {
  SendPacket(fd_.get(), {PacketKind::kGoodbye, goodbye.exit_code, goodbye.end_signal});
}

void GuardianLink::Send(EndSignals signals) {
  auto low = static_cast<uint32_t>(signals.bits);
  auto high = static_cast<uint32_t>(signals.bits >> 32);
  SendPacket(fd_.get(), {PacketKind::kEndSignals, static_cast<int>(low), static_cast<int>(high)});
}

void GuardianLink::Send(StartDebugger request) {
  SendPacket(fd_.get(), {PacketKind::kStartDebugger, request.process, request.pipe});
}

void GuardianLink::Send(EndDebugger) { SendPacket(fd_.get(), {PacketKind::kEndDebugger, 0, 0}); }

void GuardianLink::Send(DebuggerReport report) {
  SendPacket(fd_.get(),
             {PacketKind::kDebuggerReport, static_cast<int>(report.outcome), report.error_number});
}

bool GuardianLink::Send(const LivenessSocket& liveness) {
  Packet packet{PacketKind::kLivenessSocket, 0, 0};
  iovec bytes{&packet, sizeof packet};
  DescriptorBuffer buffer{};
  int fd = liveness.socket.get();
  buffer.header = {
      .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  std::memcpy(CMSG_DATA(&buffer.header), &fd, sizeof fd);
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = &buffer;
  message.msg_controllen = sizeof buffer;
  return SendMessage(fd_.get(), message);
}

bool GuardianLink::Send(Heartbeat heartbeat) {
  int unread = 0;
  bool is_first = !std::exchange(has_beaten_, true);
  if (!is_first && ioctl(fd_.get(), SIOCOUTQ, &unread) == 0 && unread > 0) return false;
  SendPacket(fd_.get(), {PacketKind::kHeartbeat, static_cast<int>(heartbeat.lease.count()), 0});
  return true;
}

std::optional<GuardianLink::Message> GuardianLink::Receive() {
  Packet packet;
  Fd descriptor;
  ssize_t count = ReceivePacket(fd_.get(), packet, descriptor);
  if (count < 0 && errno == EAGAIN) return std::nullopt;
  if (count != sizeof packet) return LinkClosed{};
  if (packet.kind == PacketKind::kGoodbye) return Goodbye{packet.first, packet.second};
  if (packet.kind == PacketKind::kEndSignals) {
    auto low = static_cast<uint32_t>(packet.first);
    auto high = static_cast<uint32_t>(packet.second);
    return EndSignals{(uint64_t{high} << 32) | low};
  }
  if (packet.kind == PacketKind::kHeartbeat)
    return Heartbeat{std::chrono::milliseconds(packet.first)};
  if (packet.kind == PacketKind::kStartDebugger) {
    return StartDebugger{packet.first, packet.second};
  }
  if (packet.kind == PacketKind::kEndDebugger) return EndDebugger{};
  if (packet.kind == PacketKind::kDebuggerReport) {
    return DebuggerReport{static_cast<DebuggerReport::Outcome>(packet.first), packet.second};
  }
  if (packet.kind == PacketKind::kLivenessSocket) return LivenessSocket{std::move(descriptor)};
  return SignalNotice{packet.first, packet.second};
}

}  // namespace rankrun::agent

#include "agent/guardian/guardian_link.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
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
  kDebuggerReport
};

// Wire format. A plain struct suffices because both ends are one program,
// forked. There is no signal 0: bit 0 of EndSignals is heeds_interrupts.
struct Packet {
  PacketKind kind;
  int first;
  int second;
};

void SendPacket(int fd, const Packet& packet) {
  ssize_t sent;
  do {
    sent = send(fd, &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
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
  auto low = static_cast<uint32_t>(signals.bits) | uint32_t{signals.heeds_interrupts};
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

bool GuardianLink::Send(Heartbeat heartbeat) {
  int unread = 0;
  bool is_first = !std::exchange(has_beaten_, true);
  if (!is_first && ioctl(fd_.get(), SIOCOUTQ, &unread) == 0 && unread > 0) return false;
  SendPacket(fd_.get(), {PacketKind::kHeartbeat, static_cast<int>(heartbeat.lease.count()), 0});
  return true;
}

std::optional<GuardianLink::Message> GuardianLink::Receive() {
  if (!put_back_.empty()) {
    const Message message = put_back_.front();
    put_back_.pop_front();
    return message;
  }
  Packet packet;
  ssize_t count;
  do {
    count = recv(fd_.get(), &packet, sizeof packet, MSG_DONTWAIT);
    // ECONNRESET: the other side died with unread messages. The kernel reports
    // this once, before the last messages of that side.
  } while (count < 0 && (errno == EINTR || errno == ECONNRESET));
  if (count < 0 && errno == EAGAIN) return std::nullopt;
  if (count != sizeof packet) return LinkClosed{};
  if (packet.kind == PacketKind::kGoodbye) return Goodbye{packet.first, packet.second};
  if (packet.kind == PacketKind::kEndSignals) {
    auto low = static_cast<uint32_t>(packet.first);
    auto high = static_cast<uint32_t>(packet.second);
    return EndSignals{(uint64_t{high} << 32) | (low & ~uint32_t{1}), (low & 1) != 0};
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
  return SignalNotice{packet.first, packet.second};
}

}  // namespace rankrun::agent

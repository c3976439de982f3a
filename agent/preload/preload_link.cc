#include "agent/preload/preload_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace rankrun::agent {
namespace {

constexpr size_t kMaxPacket = 64 * 1024;
constexpr size_t kMaxDescriptors = 8;
constexpr const char* kEnded = "it has ended";

// Milliseconds until the deadline, for poll: -1 for ever.
int LeftOf(TimePoint deadline) {
  if (deadline == TimePoint::max()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

}  // namespace

Result<PreloadLink> PreloadLink::Open(Fd& theirs) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return SystemError("connect the preloader", errno);
  }
  theirs.Reset(ends[1]);
  return PreloadLink(Fd(ends[0]));
}

Result<void> PreloadLink::Send(std::string_view text, const std::vector<int>& descriptors) {
  iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const size_t bytes = sizeof(int) * descriptors.size();
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  if (sendmsg(socket_.get(), &message, MSG_NOSIGNAL) >= 0) return {};
  if (errno == EPIPE || errno == ECONNRESET) return Error{ErrorCode::kPeerLost, kEnded};
  return SystemError("send an order to it", errno);
}

Result<std::string> PreloadLink::Receive(TimePoint deadline, int interrupt) {
  for (;;) {
    // poll ignores a negative descriptor.
    std::array<pollfd, 2> entries{{{.fd = socket_.get(), .events = POLLIN, .revents = 0},
                                   {.fd = interrupt, .events = POLLIN, .revents = 0}}};
    const int ready = poll(entries.data(), entries.size(), LeftOf(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return SystemError("wait for it", errno);
    if (ready == 0) return Error{ErrorCode::kTimeout, "it does not answer"};
    if (entries[0].revents == 0) return Error{ErrorCode::kCancelled, "the wait was interrupted"};
    std::string text(kMaxPacket, '\0');
    const ssize_t size = recv(socket_.get(), text.data(), text.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return Error{ErrorCode::kPeerLost, kEnded};
    text.resize(static_cast<size_t>(size));
    return text;
  }
}

}  // namespace rankrun::agent

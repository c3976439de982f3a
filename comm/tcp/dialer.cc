#include "comm/tcp/dialer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rankrun::comm::tcp {
namespace {

constexpr size_t kMaxAttempts = 64;  // at a time
constexpr std::chrono::milliseconds kBeforeRetry{20};

// 0: the peer has closed the connection, or another program answers. Both end
// when the peer has a place for this rank.
bool MayEnd(int error_number) {
  return error_number == 0 || error_number == ECONNREFUSED || error_number == ECONNRESET ||
         error_number == ECONNABORTED || error_number == EPIPE || error_number == ETIMEDOUT;
}

}  // namespace

bool Dialer::HasPlace() const { return attempts_.size() < kMaxAttempts; }

Result<void> Dialer::Start(TimePoint now) {
  while (HasPlace() && !waiting_.empty() && now >= waiting_.front().not_before) {
    Target target = std::move(waiting_.front());
    waiting_.pop_front();
    Fd fd = StartConnecting(target.address);
    if (!fd) {
      int error_number = errno;
      auto ok = Retry(std::move(target), error_number, ErrorText(error_number), now);
      if (!ok) return ok;
      continue;
    }
    attempts_.push_back(
        {.target = target,
         .socket = HandshakeSocket(std::move(fd), DialerHandshake(keys_, target.id))});
  }
  return {};
}

void Dialer::AddPollEntries(std::vector<pollfd>& entries) const {
  for (const Attempt& attempt : attempts_) {
    const HandshakeSocket& socket = attempt.socket;
    entries.push_back({.fd = socket.fd(), .events = socket.events(), .revents = 0});
  }
}

TimePoint Dialer::NextDeadline() const {
  return waiting_.empty() || !HasPlace() ? TimePoint::max() : waiting_.front().not_before;
}

Result<void> Dialer::Advance(std::span<const pollfd> entries, TimePoint now) {
  size_t i = 0;
  for (Attempt& attempt : attempts_) {
    if (entries[i++].revents == 0) continue;
    if (auto ok = AdvanceHandshake(attempt, now); !ok) return ok;
  }
  std::erase_if(attempts_, [](const Attempt& attempt) { return attempt.is_over; });
  return {};
}

Result<void> Dialer::AdvanceHandshake(Attempt& attempt, TimePoint now) {
  HandshakeSocket::State state = attempt.socket.Advance();
  if (state == HandshakeSocket::State::kPending) return {};
  attempt.is_over = true;
  const Target& target = attempt.target;
  if (state == HandshakeSocket::State::kFailed) {
    return Retry(target, attempt.socket.error_number(), attempt.socket.failure(), now);
  }
  table_.Put(static_cast<int>(target.id.listener), target.id.stream, attempt.socket.TakeSocket());
  return {};
}

// Schedules another attempt after a failure, or returns the failure.
Result<void> Dialer::Retry(Target target, int error_number, std::string_view why, TimePoint now) {
  std::string action = "connect to " + target.peer_name + " at " + target.address.ToString();
  if (!MayEnd(error_number)) return SocketError(action, error_number, need_);
  last_failure_ = action.append(": ").append(why);
  target.not_before = now + kBeforeRetry;
  waiting_.push_back(std::move(target));
  return {};
}

}  // namespace rankrun::comm::tcp

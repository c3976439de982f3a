#include "comm/tcp/handshake_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "comm/tcp/socket.h"

namespace rankrun::comm::tcp {
namespace {

constexpr size_t kMaxMessage = 128;  // of a handshake

const char kStranger[] = "the program there is no rank of this group";

bool IsTransient(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

}  // namespace

HandshakeSocket::HandshakeSocket(Fd dialed, DialerHandshake handshake)
    : fd_(std::move(dialed)),
      handshake_(std::move(handshake)),
      is_connecting_(true),
      to_send_(std::get<DialerHandshake>(handshake_).first()) {}

HandshakeSocket::HandshakeSocket(Fd accepted, ListenerHandshake handshake)
    : fd_(std::move(accepted)), handshake_(std::move(handshake)), is_connecting_(false) {}

short HandshakeSocket::events() const {
  return is_connecting_ || !to_send_.empty() ? POLLOUT : POLLIN;
}

HandshakeSocket::State HandshakeSocket::Advance() {
  if (is_connecting_) FinishConnecting();
  while (state_ == State::kPending) {
    if (!to_send_.empty()) {
      if (!Flush()) break;
    } else if (is_proven_) {
      state_ = State::kProven;
    } else if (!Receive()) {
      break;
    }
  }
  return state_;
}

void HandshakeSocket::FinishConnecting() {
  is_connecting_ = false;
  if (int error_number = TakeSocketError(fd()); error_number != 0) return Fail(error_number);
  if (IsConnectedToItself(fd())) Fail(ECONNREFUSED);  // nobody listens there
}

// Returns whether it has sent bytes.
bool HandshakeSocket::Flush() {
  ssize_t sent = send(fd(), to_send_.data(), to_send_.size(), MSG_NOSIGNAL);
  if (sent < 0 && !IsTransient(errno)) Fail(errno);
  if (sent <= 0) return false;
  to_send_.erase(0, static_cast<size_t>(sent));
  return true;
}

// Returns whether it has received bytes.
bool HandshakeSocket::Receive() {
  size_t wants = std::visit([](const auto& side) { return side.wants(); }, handshake_);
  std::array<char, kMaxMessage> buffer;
  ssize_t got = recv(fd(), buffer.data(), wants - received_.size(), 0);
  if (got == 0) Fail("Connection closed by peer");
  if (got < 0 && !IsTransient(errno)) Fail(errno);
  if (got <= 0) return false;
  received_.append(buffer.data(), static_cast<size_t>(got));
  if (!CanContinue()) {
    Fail(kStranger);
  } else if (received_.size() == wants) {
    TakeMessage();
  }
  return true;
}

void HandshakeSocket::TakeMessage() {
  HandshakeStep step = std::visit([&](auto& side) { return side.Take(received_); }, handshake_);
  received_.clear();
  to_send_ = std::move(step.reply);
  is_proven_ = step.state == HandshakeStep::State::kProven;
  if (step.state == HandshakeStep::State::kFailed) Fail(kStranger);
}

// Returns whether the peer may be a rank, as far as its first bytes show.
bool HandshakeSocket::CanContinue() const {
  const auto* listener = std::get_if<ListenerHandshake>(&handshake_);
  return listener == nullptr || listener->CanContinue(received_);
}

void HandshakeSocket::Fail(int error_number) {
  error_number_ = error_number;
  Fail(ErrorText(error_number));
}

void HandshakeSocket::Fail(std::string reason) {
  state_ = State::kFailed;
  failure_ = std::move(reason);
}

}  // namespace rankrun::comm::tcp

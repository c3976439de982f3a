#pragma once

#include <string>
#include <variant>

#include "base/fd.h"
#include "comm/tcp/handshake.h"

namespace rankrun::comm::tcp {

// Non-blocking socket on which a handshake is in progress. It reads no byte
// behind the handshake.
// Thread: one at a time.
class HandshakeSocket {
 public:
  enum class State { kPending, kProven, kFailed };

  // `dialed` is connecting or connected.
  HandshakeSocket(Fd dialed, DialerHandshake handshake);
  HandshakeSocket(Fd accepted, ListenerHandshake handshake);

  int fd() const { return fd_.get(); }
  // Returns the events for which the owner must poll.
  short events() const;

  // Proceeds without waiting. Must follow an event of the socket.
  State Advance();

  // Cause of kFailed: a text, and the error of the socket or 0 if the peer
  // closed it or is a stranger.
  const std::string& failure() const { return failure_; }
  int error_number() const { return error_number_; }

  // Valid after kProven, on the side of the listener.
  const StreamId& id() const { return std::get<ListenerHandshake>(handshake_).id(); }
  // After kProven: returns the socket.
  Fd TakeSocket() { return std::move(fd_); }

 private:
  void FinishConnecting();
  bool Flush();
  bool Receive();
  void TakeMessage();
  bool CanContinue() const;
  void Fail(int error_number);
  void Fail(std::string reason);

  Fd fd_;
  std::variant<DialerHandshake, ListenerHandshake> handshake_;
  State state_ = State::kPending;
  bool is_connecting_;
  bool is_proven_ = false;
  std::string to_send_;
  std::string received_ = {};  // beginning of the message that the handshake wants
  std::string failure_ = {};
  int error_number_ = 0;
};

}  // namespace rankrun::comm::tcp

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "base/fd.h"
#include "base/result.h"

namespace rankrun::agent {

// A signal that reached the guardian, passed on to the agent.
struct SignalNotice {
  int signal_number;
  pid_t sender;  // 0: the kernel (a terminal's Ctrl-C)
};

// The agent's last word: how the guardian is to end.
struct Goodbye {
  int exit_code;
  int end_signal;  // end by this signal instead, if not 0
};

// Which signals end the job gently (--signals-to-handle), told by the agent
// once it knows: bit n stands for signal n.
struct EndSignals {
  uint64_t bits;
};

// From the agent: it lives, and wants to be killed with all that is below it
// when it has been silent for `lease`. Each message of the agent's renews that.
struct Heartbeat {
  std::chrono::milliseconds lease;
};

struct LinkClosed {};  // the other side has died

// The socket between guardian and agent. Each end sees the other's death as
// LinkClosed, never as a signal that could be mistaken for a request.
// Thread: one at a time.
class GuardianLink {
 public:
  using Message = std::variant<SignalNotice, Goodbye, EndSignals, Heartbeat, LinkClosed>;

  // The guardian's end and the agent's end.
  static Result<std::pair<GuardianLink, GuardianLink>> CreatePair();

  // Never blocks; a message that cannot be sent (the other side is gone, or
  // has not read for long) is dropped: its end will be seen by Receive.
  void Send(SignalNotice notice);
  void Send(Goodbye goodbye);
  void Send(EndSignals signals);
  // But for the first, only if the guardian has read all before: one that is
  // stopped (Ctrl-Z) must have room for the goodbye. Returns whether it was sent.
  bool Send(Heartbeat heartbeat);

  // The next message, or nothing if there is none yet.
  std::optional<Message> Receive();

  int fd() const { return fd_.get(); }

 private:
  explicit GuardianLink(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
  bool has_beaten_ = false;
};

}  // namespace rankrun::agent

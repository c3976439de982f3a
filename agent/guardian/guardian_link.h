#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <variant>

#include "base/fd.h"
#include "base/result.h"

namespace rankrun::agent {

// A signal that the guardian received and passes on to the agent.
struct SignalNotice {
  int signal_number;
  pid_t sender;  // 0: the kernel (a terminal's Ctrl-C)
};

// Last message of the agent: how the guardian is to exit.
struct Goodbye {
  int exit_code;
  int end_signal;  // exit by this signal instead, if not 0
};

// Signals that end the job gently (--signals-to-handle), sent by the agent once
// it knows them: bit n stands for signal n.
struct EndSignals {
  uint64_t bits;
  bool heeds_interrupts = false;  // kInterrupts among them count although they were ignored
};

// Sent by the agent to show that it lives. If it is silent for `lease`, the
// guardian kills it and its descendants. Each message of the agent renews the
// lease.
struct Heartbeat {
  std::chrono::milliseconds lease;
};

// Request of the agent to start a debugger of this process on the terminal, or to end the
// debugger that runs. A process that debugs itself gets the terminal instead: its path
// comes through `pipe`, a descriptor of that process; -1: it needs a debugger.
struct StartDebugger {
  pid_t process;
  int pipe = -1;
};
struct EndDebugger {};

// Answer of the guardian to StartDebugger: why there is no debugger, or that it has ended.
struct DebuggerReport {
  enum class Outcome : int { kEnded, kNoTerminal, kInBackground, kNoProgram, kFailed };
  Outcome outcome;
  int error_number;  // of kNoProgram and kFailed
};

struct LinkClosed {};  // the other side has died

// Socket between guardian and agent. Each end sees the death of the other as
// LinkClosed, never as a signal that could be mistaken for a request.
// Thread: one at a time.
class GuardianLink {
 public:
  using Message = std::variant<SignalNotice, Goodbye, EndSignals, Heartbeat, StartDebugger,
                               EndDebugger, DebuggerReport, LinkClosed>;

  // Returns the guardian's end and the agent's end.
  static Result<std::pair<GuardianLink, GuardianLink>> CreatePair();

  // Sends a message without blocking. Drops a message that cannot be sent,
  // because the other side is dead (Receive reports that) or has not read for
  // long.
  void Send(SignalNotice notice);
  void Send(Goodbye goodbye);
  void Send(EndSignals signals);
  void Send(StartDebugger request);
  void Send(EndDebugger request);
  void Send(DebuggerReport report);
  // Sends the first heartbeat always, later ones only if the guardian has read
  // all messages before. A stopped guardian (Ctrl-Z) must keep room for the
  // goodbye. Returns whether it was sent.
  bool Send(Heartbeat heartbeat);

  // Returns the next message, or nothing if there is none yet.
  std::optional<Message> Receive();
  // Receive returns the message before any that come later. fd() does not show it.
  void PutBack(const Message& message) { put_back_.push_back(message); }

  int fd() const { return fd_.get(); }

 private:
  explicit GuardianLink(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
  bool has_beaten_ = false;
  std::deque<Message> put_back_;
};

}  // namespace rankrun::agent

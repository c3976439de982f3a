#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "agent/control_dial.h"
#include "agent/control_frame.h"
#include "agent/control_opening.h"
#include "base/clock.h"

namespace rankrun::agent {

struct LinkOptions {
  std::vector<Endpoint> endpoints;  // dialled in turn; not empty
  std::string job_id;
  std::string secret;  // bytes; empty: there is none
  // What this node says of itself first, at most kMostHelloBytes: called for each
  // connection, when local_address() is that of the new one.
  std::function<std::string()> make_hello;
  std::chrono::milliseconds connect_timeout{3000};  // for each address
  // From the connection to the server's answer.
  std::chrono::milliseconds opening_timeout{5000};
  // Over this, the coordinator is not reading, and the connection is given up.
  size_t unsent_bytes = size_t{8} << 20;
};

// A member's connection to the coordinator, which it makes again and again until
// it is closed: dials the endpoints in turn, pauses after each pass (5 ms, then
// twice as long up to 200 ms, give or take), and proves the job secret.
// Thread: loop.  Lifetime: may not end inside one of its own callbacks; Send,
// Redirect and Close may be called there.
class ControlLink {
 public:
  struct Callbacks {
    std::function<void()> on_up;  // both sides have proved themselves
    std::function<void(std::string payload)> on_message;
    // Once for each on_up, unless Redirect or Close came before; it dials again
    // by itself.
    std::function<void(Error why)> on_down;
    // A try came to nothing, and others follow. May be empty.
    std::function<void(const DialFailure&)> on_failed;
  };

  // The first dial begins on the loop's next turn.
  ControlLink(Loop& loop, LinkOptions options, Callbacks callbacks);
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;
  ~ControlLink();

  bool is_up() const { return phase_ == Phase::kUp; }

  // Dropped while the link is down: what is said first is said in on_up.
  // `payload` is at most kMostFrameBytes.
  void Send(std::string_view payload);

  // Gives up the connection, if there is one, and dials `endpoint` next. If that
  // fails, the others follow.
  void Redirect(const Endpoint& endpoint);

  // For good. What was sent is left to the kernel.
  void Close();

  // The route by which the coordinator is reached: of the latest connection.
  const std::optional<SocketAddress>& local_address() const { return local_address_; }

  // The latest failure at each endpoint since the link was last up.
  const std::vector<DialFailure>& failures() const { return failures_; }
  // These in words, with how long it has been tried; empty if there are none.
  std::string Verdict(TimePoint now) const;

 private:
  enum class Phase { kPausing, kDialling, kOpening, kUp, kClosed };

  const Endpoint& target() const { return redirect_ ? *redirect_ : options_.endpoints[next_]; }
  void Dial();
  void OnDialled(int dial, DialResult result);
  void BeginOpening(std::unique_ptr<Stream> stream);

  void OnData(std::string_view bytes);
  void OnOpeningFrame(std::string_view frame);
  void OnEnd(const std::optional<Error>& error);
  void OnTimer();
  void GoUp();

  void FailOpening(DialVerdict verdict, std::string why);
  void OnFailure(DialFailure failure);
  void GoDown(Error why);
  void Drop();
  void Sweep();
  void DialAfter(std::chrono::milliseconds pause);
  std::chrono::milliseconds NextPause();

  Loop& loop_;
  const LinkOptions options_;
  const Callbacks callbacks_;
  const JobSecret secret_;
  Phase phase_ = Phase::kPausing;
  size_t next_ = 0;                   // of the endpoints
  std::optional<Endpoint> redirect_;  // to be dialled before it
  size_t first_address_ = 0;          // to be tried of an endpoint
  int pauses_ = 0;                    // since the link was up for long, or long ago
  int dials_ = 0;                     // the results of former ones are late
  TimePoint since_;                   // it is down
  TimePoint up_since_{};
  std::vector<DialFailure> failures_;
  std::unique_ptr<ControlDial> dial_;
  std::optional<DiallerOpening> opening_;
  bool has_challenge_ = false;
  std::unique_ptr<Stream> stream_;
  FrameReader reader_;
  std::optional<SocketAddress> local_address_;
  std::vector<std::unique_ptr<Stream>> dropped_;  // may not end inside their callbacks
  std::unique_ptr<ControlDial> dropped_dial_;     // nor may it
  std::minstd_rand random_;
  Timer timer_;  // the next dial, the end of an opening, or that of a link which is stuck
  Timer sweep_;
};

}  // namespace rankrun::agent

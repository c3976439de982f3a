#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "agent/control/control_dial.h"
#include "agent/control/control_frame.h"
#include "agent/control/control_handshake.h"
#include "base/clock.h"

namespace rankrun::agent {

struct LinkOptions {
  std::vector<Endpoint> endpoints;  // in the order of the attempts; not empty
  std::string job_id;
  std::string secret;  // bytes; empty: the job has no secret
  // Returns the payload of the hello, at most kMaxHelloBytes. Called for each
  // connection, after local_address() has its address.
  std::function<std::string()> make_hello;
  // Returns the secret in a credential of the coordinator, instead of `secret`.
  // Runs in the thread pool. Empty: this node does not use munge.
  std::function<Result<std::string>(const std::string& credential)> open_credential = {};
  // Which users of this host may run the coordinator; empty: all. For a job without
  // a secret.
  std::function<bool(uid_t)> admits_user = {};
  std::chrono::milliseconds connect_timeout{3000};  // for each address
  // Longest time from the connection to the server's answer.
  std::chrono::milliseconds handshake_timeout{5000};
  // With more unsent bytes the link counts as stuck and is closed.
  size_t unsent_bytes = size_t{8} << 20;
};

// A member's connection to the coordinator. Reconnects until Close: dials the
// endpoints in turn, with a pause after each pass that grows from 5 ms to about
// 200 ms, and proves the job secret.
// Thread: loop.  Lifetime: must not be destroyed inside one of its own
// callbacks; Send, Redirect and Close may be called there.
class ControlLink {
 public:
  struct Callbacks {
    std::function<void()> on_up;  // after the handshake
    std::function<void(std::string payload)> on_message;
    // Once for each on_up, unless Redirect or Close was called before. The link
    // dials again.
    std::function<void(Error why)> on_down;
    // An attempt failed; others follow. May be empty.
    std::function<void(const DialFailure&)> on_failed;
  };

  // Dials in the next iteration of the loop.
  ControlLink(Loop& loop, LinkOptions options, Callbacks callbacks);
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;
  ~ControlLink();

  bool is_up() const { return phase_ == Phase::kUp; }

  // Sends `payload`, at most kMaxMessageBytes. Drops it while the link is down,
  // so first messages belong into on_up.
  void Send(std::string_view payload);

  // Drops the connection and dials `endpoint` next. If that fails, the link
  // dials its own endpoints again.
  void Redirect(const Endpoint& endpoint);

  // Dials these endpoints from the next attempt on; not empty.
  void SetEndpoints(std::vector<Endpoint> endpoints);

  // Closes the link for ever. The kernel still sends the bytes that it has.
  void Close();

  // Address of this node on the latest connection.
  const std::optional<SocketAddress>& local_address() const { return local_address_; }

  // Address to which that connection leads.
  const std::optional<SocketAddress>& peer_address() const { return peer_address_; }

  // The latest failure at each endpoint since the link was last up.
  const std::vector<DialFailure>& failures() const { return failures_; }
  // Returns these failures and the time since the first attempt as one line;
  // empty if there are none.
  std::string FailureText(TimePoint now) const;

 private:
  struct CredentialJob;
  enum class Phase { kPausing, kDialling, kHandshake, kUp, kClosed };

  const Endpoint& target() const { return redirect_ ? *redirect_ : options_.endpoints[next_]; }
  void Dial();
  void OnDialled(int dial, DialResult result);
  void BeginHandshake(std::unique_ptr<Stream> stream);

  void OnData(std::string_view bytes);
  void OnHandshakeFrame(std::string_view frame);
  bool IsOfAdmittedUser();
  void OpenCredential();
  void OnCredential(const Result<std::string>& secret);
  void SendHello();
  void OnEnd(const std::optional<Error>& error);
  void OnTimer();
  void GoUp();

  void FailHandshake(DialFailureKind kind, std::string why);
  void OnFailure(DialFailure failure);
  void GoDown(Error why);
  void Drop();
  void Sweep();
  void DialAfter(std::chrono::milliseconds pause);
  std::chrono::milliseconds NextPause();

  Loop& loop_;
  LinkOptions options_;
  const Callbacks callbacks_;
  const JobSecret secret_;
  std::optional<JobSecret> handed_secret_;         // from the latest credential
  std::shared_ptr<CredentialJob> credential_job_;  // while one is opened; shared with the pool
  Phase phase_ = Phase::kPausing;
  size_t next_ = 0;                   // index of the endpoint to dial
  std::optional<Endpoint> redirect_;  // to dial before that endpoint
  size_t first_address_ = 0;          // index of the first address to try
  int pauses_ = 0;                    // number of pauses since the last reset
  int dials_ = 0;                     // number of the latest dial; older results are ignored
  TimePoint since_;                   // start of the attempts, while the link is down
  TimePoint up_since_{};
  std::vector<DialFailure> failures_;
  std::unique_ptr<ControlDial> dial_;
  std::optional<ClientHandshake> handshake_;
  bool has_challenge_ = false;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<SessionCipher> cipher_;  // while the link is up
  FrameReader reader_;
  std::optional<SocketAddress> local_address_;
  std::optional<SocketAddress> peer_address_;
  // Destroyed by Sweep, because they must not be destroyed in their own
  // callbacks.
  std::vector<std::unique_ptr<Stream>> dropped_;
  std::unique_ptr<ControlDial> dropped_dial_;
  std::minstd_rand random_;
  Timer timer_;  // next dial, deadline of the handshake, or end of a stuck link
  Timer sweep_;
};

}  // namespace rankrun::agent

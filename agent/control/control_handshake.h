#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/control/dial_failure.h"
#include "agent/control/job_secret.h"
#include "agent/control/session_cipher.h"
#include "base/net/control_preamble.h"
#include "base/result.h"

// Handshake of a connection of the control plane, in four steps: the client
// sends the preamble and its version; the server sends a challenge with its
// version; the client sends its hello with a proof; the server sends an answer
// with a proof. The last three are frames with CBOR maps. Preamble, version and
// the version in the challenge are the same in all versions, so that each side
// can recognise another version. The proofs cover the keys of the session, so
// that nobody between the two sides knows them. Pure.
namespace rankrun::agent {

constexpr uint8_t kControlVersion = 3;
constexpr size_t kFirstBytes = kControlPreamble.size() + 1;

// Largest frame of a handshake. It is smaller than other frames because any
// program may send it.
constexpr size_t kMaxHandshakeBytes = size_t{256} << 10;
constexpr size_t kMaxHelloBytes = size_t{192} << 10;

// Reason for which a server refuses a client. The numbers are on the wire.
enum class HandshakeRefusal {
  kNone = 0,
  kOtherJob = 1,
  kNoSecret = 2,    // only the server has a secret
  kOnlySecret = 3,  // only the client has a secret
  kWrongSecret = 4,
};

// Server's side of one handshake.
class ServerHandshake {
 public:
  // All arguments must outlive the object. `credential`: for nodes that get the
  // secret by munge; empty: none.
  ServerHandshake(const JobSecret& secret, std::string_view job_id,
                  std::string_view credential = {});

  // Returns the first frame. Clients of another version get it, too, because it
  // has our version.
  std::string Challenge() const;

  struct Judged {
    HandshakeRefusal refusal = HandshakeRefusal::kNone;
    std::string why;                        // reason of the refusal, for the log
    std::string hello;                      // payload of the client; empty if refused
    std::string claimed_hello;              // of one without the secret, so not to be trusted
    std::string answer;                     // frame to send, also if refused
    std::unique_ptr<SessionCipher> cipher;  // for all later frames; null if refused
  };
  // Checks the hello of a client. Errors: kProtocol if `frame` is not a hello.
  Result<Judged> Judge(std::string_view frame) const;

 private:
  const JobSecret& secret_;
  std::string_view job_id_;
  std::string_view credential_;
  const std::string nonce_;
  const KeyPair keys_{ProofRole::kServer};
};

// Client's side of one handshake.
class ClientHandshake {
 public:
  // `secret` and `job_id` must outlive the object.
  ClientHandshake(const JobSecret& secret, std::string_view job_id);

  struct Failure {
    DialFailureKind kind;
    std::string why;
  };

  // To be called in this order. The first two Take functions return nothing on
  // success.
  static std::string FirstBytes();
  std::optional<Failure> TakeChallenge(std::string_view frame);
  // Returns the server's credential of munge; empty: none.
  const std::string& credential() const { return credential_; }
  // Replaces the secret by the one in the credential. `secret` must outlive the
  // object.
  void UseSecret(const JobSecret& secret) { secret_ = &secret; }
  std::string Hello(std::string payload);
  std::optional<Failure> TakeAnswer(std::string_view frame);
  std::unique_ptr<SessionCipher> TakeCipher() { return std::move(cipher_); }  // for later frames

 private:
  ProofSubject Subject(ProofRole role) const;

  const JobSecret* secret_;
  std::string_view job_id_;
  const std::string nonce_;
  const KeyPair keys_{ProofRole::kClient};
  std::string credential_;
  std::string server_nonce_;
  std::string server_key_;
  std::string hello_;
  std::unique_ptr<SessionCipher> cipher_;
};

}  // namespace rankrun::agent

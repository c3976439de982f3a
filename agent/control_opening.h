#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/dial_verdict.h"
#include "agent/job_secret.h"
#include "base/control_preamble.h"
#include "base/result.h"

// How a connection of the control plane is opened: the dialler sends the
// preamble and its version, the server a challenge with its own, the dialler
// its hello with a proof, the server an answer with a proof. From the challenge
// on all are frames of CBOR. What comes up to it stays the same in all
// versions, so that each side can tell that they differ. Pure.
namespace rankrun::agent {

constexpr uint8_t kControlVersion = 1;
constexpr size_t kFirstBytes = kControlPreamble.size() + 1;

// The most that a frame of an opening may have: a stranger may have sent it.
constexpr size_t kMostOpeningBytes = size_t{256} << 10;
constexpr size_t kMostHelloBytes = size_t{192} << 10;

// Why a server does not let a dialler in. The numbers are on the wire.
enum class OpeningRefusal {
  kNone = 0,
  kOtherJob = 1,
  kNoSecret = 2,    // the dialler has none
  kOnlySecret = 3,  // the server has none
  kWrongSecret = 4,
};

// The side that listens, for one connection.
class ServerOpening {
 public:
  // `secret` and `job_id` outlive it.
  ServerOpening(const JobSecret& secret, std::string_view job_id);

  // What to send first; also to a dialler of another version, which then knows.
  std::string Challenge() const;

  struct Judged {
    OpeningRefusal refusal = OpeningRefusal::kNone;
    std::string why;     // it is refused, for the log
    std::string hello;   // what the dialler had to say
    std::string answer;  // to be sent in any case
  };
  // Errors: kProtocol for what is no hello.
  Result<Judged> Judge(std::string_view frame) const;

 private:
  const JobSecret& secret_;
  std::string_view job_id_;
  std::string nonce_;
};

// The side that dials, for one connection.
class DiallerOpening {
 public:
  // `secret` and `job_id` outlive it.
  DiallerOpening(const JobSecret& secret, std::string_view job_id);

  struct Failure {
    DialVerdict verdict;
    std::string why;
  };

  static std::string FirstBytes();
  std::optional<Failure> TakeChallenge(std::string_view frame);
  // After the challenge.
  std::string Hello(std::string payload);
  // After the hello. Nothing: the connection is open.
  std::optional<Failure> TakeAnswer(std::string_view frame) const;

 private:
  std::optional<Failure> CheckServer(std::string_view proof) const;

  const JobSecret& secret_;
  std::string_view job_id_;
  std::string nonce_;
  std::string server_nonce_;
  std::string hello_;
};

}  // namespace rankrun::agent

#include "agent/control/control_handshake.h"

#include <nlohmann/json.hpp>

#include "agent/control/cbor.h"
#include "base/check.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

using Json = nlohmann::json;

constexpr size_t kNameWidth = 64;  // of a job id in an error text, in characters

Json Bytes(std::string_view bytes) { return Json::binary({bytes.begin(), bytes.end()}); }

// Returns null if `frame` is no map.
Json Decode(std::string_view frame) {
  auto json = ParseCborMap(frame);
  return json ? *std::move(json) : Json();
}

std::optional<std::string> BytesAt(const Json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end() || !found->is_binary()) return std::nullopt;
  const auto& bytes = found->get_binary();
  return std::string(bytes.begin(), bytes.end());
}

std::optional<int> NumberAt(const Json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  auto number = found->get<uint64_t>();
  constexpr uint64_t kMax = 255;
  return number <= kMax ? std::optional(static_cast<int>(number)) : std::nullopt;
}

std::string Quoted(std::string_view job_id) {
  return "\"" + EscapedAndCut(job_id, kNameWidth) + "\"";
}

ClientHandshake::Failure NoAnswer() {
  return {DialFailureKind::kNotRankrun, "the program that answers there is not rankrun"};
}

struct Greeting {
  std::string job_id;
  std::string nonce;
  std::string payload;
  std::string proof;
};

std::optional<Greeting> DecodeGreeting(std::string_view frame) {
  Json json = Decode(frame);
  auto job_id = BytesAt(json, "job");
  auto nonce = BytesAt(json, "nonce");
  auto payload = BytesAt(json, "payload");
  auto proof = BytesAt(json, "proof");
  if (!job_id || !nonce || nonce->size() != kNonceBytes || !payload || !proof) return std::nullopt;
  return Greeting{std::move(*job_id), std::move(*nonce), std::move(*payload), std::move(*proof)};
}

}  // namespace

ServerHandshake::ServerHandshake(const JobSecret& secret, std::string_view job_id)
    : secret_(secret), job_id_(job_id), nonce_(MakeNonce()) {}

std::string ServerHandshake::Challenge() const {
  return CborOf({{"version", kControlVersion}, {"nonce", Bytes(nonce_)}});
}

Result<ServerHandshake::Judged> ServerHandshake::Judge(std::string_view frame) const {
  auto greeting = DecodeGreeting(frame);
  if (!greeting) return Error{ErrorCode::kProtocol, "the frame is not the hello of a rankrun"};
  ProofSubject subject{ProofRole::kClient, nonce_, greeting->nonce, job_id_, greeting->payload};
  Judged judged;
  if (greeting->job_id != job_id_) {
    judged.refusal = HandshakeRefusal::kOtherJob;
    judged.why =
        "it belongs to job " + Quoted(greeting->job_id) + ", this is job " + Quoted(job_id_);
  } else if (secret_.exists() && greeting->proof.empty()) {
    judged.refusal = HandshakeRefusal::kNoSecret;
    judged.why = "this job has a secret, the node has none";
  } else if (!secret_.exists() && !greeting->proof.empty()) {
    judged.refusal = HandshakeRefusal::kOnlySecret;
    judged.why = "the node has a job secret, this job has none";
  } else if (!secret_.IsProof(greeting->proof, subject)) {
    judged.refusal = HandshakeRefusal::kWrongSecret;
    judged.why = "wrong job secret";
  }
  Json answer{{"refusal", static_cast<unsigned>(judged.refusal)}, {"job", Bytes(job_id_)}};
  if (judged.refusal == HandshakeRefusal::kNone) {
    subject.role = ProofRole::kServer;
    answer["proof"] = Bytes(secret_.Prove(subject));
    judged.hello = std::move(greeting->payload);
  }
  judged.answer = CborOf(answer);
  return judged;
}

ClientHandshake::ClientHandshake(const JobSecret& secret, std::string_view job_id)
    : secret_(secret), job_id_(job_id), nonce_(MakeNonce()) {}

std::string ClientHandshake::FirstBytes() {
  return std::string(kControlPreamble) + static_cast<char>(kControlVersion);
}

std::optional<ClientHandshake::Failure> ClientHandshake::TakeChallenge(std::string_view frame) {
  Json json = Decode(frame);
  auto version = NumberAt(json, "version");
  if (!version) return NoAnswer();
  if (*version != kControlVersion) {
    return Failure{DialFailureKind::kOtherVersion,
                   "the rankrun there speaks version " + std::to_string(*version) +
                       " of the control protocol, this one version " +
                       std::to_string(kControlVersion) + ": all nodes need the same rankrun"};
  }
  auto nonce = BytesAt(json, "nonce");
  if (!nonce || nonce->size() != kNonceBytes) return NoAnswer();
  server_nonce_ = std::move(*nonce);
  return std::nullopt;
}

std::string ClientHandshake::Hello(std::string payload) {
  RANKRUN_CHECK(payload.size() <= kMaxHelloBytes, "a hello is too large to be sent");
  hello_ = std::move(payload);
  const std::string proof =
      secret_.Prove({ProofRole::kClient, server_nonce_, nonce_, job_id_, hello_});
  return CborOf({{"job", Bytes(job_id_)},
                 {"nonce", Bytes(nonce_)},
                 {"payload", Bytes(hello_)},
                 {"proof", Bytes(proof)}});
}

std::optional<ClientHandshake::Failure> ClientHandshake::TakeAnswer(std::string_view frame) const {
  Json json = Decode(frame);
  auto refusal = NumberAt(json, "refusal");
  auto job_id = BytesAt(json, "job");
  if (!refusal || !job_id) return NoAnswer();
  switch (static_cast<HandshakeRefusal>(*refusal)) {
    case HandshakeRefusal::kNone:
      return CheckServer(BytesAt(json, "proof").value_or(""));
    case HandshakeRefusal::kOtherJob:
      return Failure{
          DialFailureKind::kOtherJob,
          "job " + Quoted(*job_id) + " is there, this node is of job " + Quoted(job_id_)};
    case HandshakeRefusal::kNoSecret:
      return Failure{DialFailureKind::kWrongSecret,
                     "the job there has a secret, this node has none"};
    case HandshakeRefusal::kOnlySecret:
      return Failure{DialFailureKind::kWrongSecret,
                     "this node has a job secret, the job there has none"};
    case HandshakeRefusal::kWrongSecret:
      return Failure{DialFailureKind::kWrongSecret, "wrong job secret"};
  }
  return NoAnswer();
}

std::optional<ClientHandshake::Failure> ClientHandshake::CheckServer(std::string_view proof) const {
  ProofSubject subject{ProofRole::kServer, server_nonce_, nonce_, job_id_, hello_};
  if (secret_.IsProof(proof, subject)) return std::nullopt;
  return Failure{DialFailureKind::kWrongSecret,
                 "the program that answers there does not know the job secret"};
}

}  // namespace rankrun::agent

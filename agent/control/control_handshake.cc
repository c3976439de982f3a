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
  std::string key;
  std::string header;
  std::string payload;
  std::string proof;
};

std::optional<Greeting> DecodeGreeting(std::string_view frame) {
  Json json = Decode(frame);
  auto job_id = BytesAt(json, "job");
  auto nonce = BytesAt(json, "nonce");
  auto key = BytesAt(json, "key");
  auto header = BytesAt(json, "stream");
  auto payload = BytesAt(json, "payload");
  auto proof = BytesAt(json, "proof");
  bool is_complete = job_id && nonce && nonce->size() == kNonceBytes && key && header && payload;
  if (!is_complete || !proof) return std::nullopt;
  return Greeting{std::move(*job_id), std::move(*nonce),   std::move(*key),
                  std::move(*header), std::move(*payload), std::move(*proof)};
}

// Returns null if `peer_key` is not the key of an honest peer.
std::unique_ptr<SessionCipher> CipherOf(const KeyPair& keys, std::string_view peer_key) {
  SessionKeys session;
  if (!keys.Derive(peer_key, session)) return nullptr;
  return std::make_unique<SessionCipher>(session);
}

struct Refusal {
  HandshakeRefusal kind = HandshakeRefusal::kNone;
  std::string why;
};

// Checks the secret first, so that strangers do not learn the job id.
Refusal Check(const Greeting& greeting, const JobSecret& secret, const ProofSubject& subject,
              std::string_view job_id) {
  if (secret.exists() && greeting.proof.empty()) {
    return {HandshakeRefusal::kNoSecret, "this job has a secret, the node has none"};
  }
  if (!secret.exists() && !greeting.proof.empty()) {
    return {HandshakeRefusal::kOnlySecret, "the node has a job secret, this job has none"};
  }
  if (!secret.IsProof(greeting.proof, subject)) {
    return {HandshakeRefusal::kWrongSecret, "wrong job secret"};
  }
  if (greeting.job_id == job_id) return {};
  return {HandshakeRefusal::kOtherJob,
          "it belongs to job " + Quoted(greeting.job_id) + ", this is job " + Quoted(job_id)};
}

}  // namespace

ServerHandshake::ServerHandshake(const JobSecret& secret, std::string_view job_id,
                                 std::string_view credential)
    : secret_(secret), job_id_(job_id), credential_(credential), nonce_(MakeNonce()) {}

std::string ServerHandshake::Challenge() const {
  Json challenge{
      {"version", kControlVersion}, {"nonce", Bytes(nonce_)}, {"key", Bytes(keys_.public_key())}};
  if (!credential_.empty()) challenge["munge"] = Bytes(credential_);
  return CborOf(challenge);
}

Result<ServerHandshake::Judged> ServerHandshake::Judge(std::string_view frame) const {
  constexpr const char* kNoHello = "the frame is not the hello of a rankrun";
  auto greeting = DecodeGreeting(frame);
  if (!greeting) return Error{ErrorCode::kProtocol, kNoHello};
  ProofSubject subject{ProofRole::kClient, nonce_,           greeting->nonce,  keys_.public_key(),
                       greeting->key,      greeting->job_id, greeting->payload};
  Refusal refusal = Check(*greeting, secret_, subject, job_id_);
  Judged judged{.refusal = refusal.kind,
                .why = std::move(refusal.why),
                .hello = {},
                .claimed_hello = {},
                .answer = {},
                .cipher = {}};
  Json answer{{"refusal", static_cast<unsigned>(judged.refusal)}};
  if (judged.refusal == HandshakeRefusal::kOtherJob) answer["job"] = Bytes(job_id_);
  bool lacks_secret = judged.refusal == HandshakeRefusal::kNoSecret ||
                      judged.refusal == HandshakeRefusal::kWrongSecret;
  if (lacks_secret) judged.claimed_hello = std::move(greeting->payload);
  if (judged.refusal == HandshakeRefusal::kNone) {
    judged.cipher = CipherOf(keys_, greeting->key);
    if (!judged.cipher || !judged.cipher->SetPeerHeader(greeting->header)) {
      return Error{ErrorCode::kProtocol, kNoHello};
    }
    subject.role = ProofRole::kServer;
    answer["proof"] = Bytes(secret_.Prove(subject));
    answer["stream"] = Bytes(judged.cipher->header());
    judged.hello = std::move(greeting->payload);
  }
  judged.answer = CborOf(answer);
  return judged;
}

ClientHandshake::ClientHandshake(const JobSecret& secret, std::string_view job_id)
    : secret_(&secret), job_id_(job_id), nonce_(MakeNonce()) {}

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
  auto key = BytesAt(json, "key");
  if (!nonce || nonce->size() != kNonceBytes || !key) return NoAnswer();
  server_nonce_ = std::move(*nonce);
  server_key_ = std::move(*key);
  credential_ = BytesAt(json, "munge").value_or("");
  cipher_ = CipherOf(keys_, server_key_);
  return cipher_ ? std::nullopt : std::optional(NoAnswer());
}

std::string ClientHandshake::Hello(std::string payload) {
  RANKRUN_CHECK(payload.size() <= kMaxHelloBytes, "a hello is too large to be sent");
  hello_ = std::move(payload);
  return CborOf({{"job", Bytes(job_id_)},
                 {"nonce", Bytes(nonce_)},
                 {"key", Bytes(keys_.public_key())},
                 {"stream", Bytes(cipher_->header())},
                 {"payload", Bytes(hello_)},
                 {"proof", Bytes(secret_->Prove(Subject(ProofRole::kClient)))}});
}

ProofSubject ClientHandshake::Subject(ProofRole role) const {
  return {role, server_nonce_, nonce_, server_key_, keys_.public_key(), job_id_, hello_};
}

std::optional<ClientHandshake::Failure> ClientHandshake::TakeAnswer(std::string_view frame) {
  Json json = Decode(frame);
  auto refusal = NumberAt(json, "refusal");
  if (!refusal) return NoAnswer();
  auto wrong = [](const char* why) { return Failure{DialFailureKind::kWrongSecret, why}; };
  switch (static_cast<HandshakeRefusal>(*refusal)) {
    case HandshakeRefusal::kNone:
      if (!secret_->IsProof(BytesAt(json, "proof").value_or(""), Subject(ProofRole::kServer))) {
        return wrong("the program that answers there does not know the job secret");
      }
      if (!cipher_->SetPeerHeader(BytesAt(json, "stream").value_or(""))) return NoAnswer();
      return std::nullopt;
    case HandshakeRefusal::kOtherJob:
      return Failure{DialFailureKind::kOtherJob,
                     "job " + Quoted(BytesAt(json, "job").value_or("")) +
                         " is there, this node is of job " + Quoted(job_id_)};
    case HandshakeRefusal::kNoSecret:
      return wrong("the job there has a secret, this node has none");
    case HandshakeRefusal::kOnlySecret:
      return wrong("this node has a job secret, the job there has none");
    case HandshakeRefusal::kWrongSecret:
      return wrong("wrong job secret");
  }
  return NoAnswer();
}

}  // namespace rankrun::agent

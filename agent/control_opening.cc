#include "agent/control_opening.h"

#include <nlohmann/json.hpp>

#include "agent/plain_cbor.h"
#include "base/check.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

using Json = nlohmann::json;

constexpr size_t kNameWidth = 64;  // of a job id in a message

Json Bytes(std::string_view bytes) { return Json::binary({bytes.begin(), bytes.end()}); }

std::string Encode(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

// An object, or null for anything else.
Json Decode(std::string_view frame) {
  if (!IsPlainCbor(frame)) return nullptr;
  Json json = Json::from_cbor(frame, /*strict=*/true, /*allow_exceptions=*/false);
  return json.is_object() ? json : nullptr;
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
  const auto number = found->get<uint64_t>();
  constexpr uint64_t kMost = 255;
  return number <= kMost ? std::optional(static_cast<int>(number)) : std::nullopt;
}

std::string Quoted(std::string_view job_id) {
  return "\"" + EscapedAndCut(job_id, kNameWidth) + "\"";
}

DiallerOpening::Failure NoAnswer() {
  return {DialVerdict::kNotRankrun, "what answers there is no rankrun"};
}

struct Greeting {
  std::string job_id;
  std::string nonce;
  std::string payload;
  std::string proof;
};

std::optional<Greeting> DecodeGreeting(std::string_view frame) {
  const Json json = Decode(frame);
  auto job_id = BytesAt(json, "job");
  auto nonce = BytesAt(json, "nonce");
  auto payload = BytesAt(json, "payload");
  auto proof = BytesAt(json, "proof");
  if (!job_id || !nonce || nonce->size() != kNonceBytes || !payload || !proof) return std::nullopt;
  return Greeting{std::move(*job_id), std::move(*nonce), std::move(*payload), std::move(*proof)};
}

}  // namespace

ServerOpening::ServerOpening(const JobSecret& secret, std::string_view job_id)
    : secret_(secret), job_id_(job_id), nonce_(MakeNonce()) {}

std::string ServerOpening::Challenge() const {
  return Encode({{"version", kControlVersion}, {"nonce", Bytes(nonce_)}});
}

Result<ServerOpening::Judged> ServerOpening::Judge(std::string_view frame) const {
  auto greeting = DecodeGreeting(frame);
  if (!greeting) return Error{ErrorCode::kProtocol, "what came is no hello of a rankrun"};
  ProofSubject subject{ProofRole::kDialler, nonce_, greeting->nonce, job_id_, greeting->payload};
  Judged judged;
  if (greeting->job_id != job_id_) {
    judged.refusal = OpeningRefusal::kOtherJob;
    judged.why = "it is of job " + Quoted(greeting->job_id) + ", this is job " + Quoted(job_id_);
  } else if (secret_.exists() && greeting->proof.empty()) {
    judged.refusal = OpeningRefusal::kNoSecret;
    judged.why = "this job has a secret, the node has none";
  } else if (!secret_.exists() && !greeting->proof.empty()) {
    judged.refusal = OpeningRefusal::kOnlySecret;
    judged.why = "the node has a job secret, this job has none";
  } else if (!secret_.IsProof(greeting->proof, subject)) {
    judged.refusal = OpeningRefusal::kWrongSecret;
    judged.why = "wrong job secret";
  }
  Json answer{{"refusal", static_cast<unsigned>(judged.refusal)}, {"job", Bytes(job_id_)}};
  if (judged.refusal == OpeningRefusal::kNone) {
    subject.role = ProofRole::kServer;
    answer["proof"] = Bytes(secret_.Prove(subject));
    judged.hello = std::move(greeting->payload);
  }
  judged.answer = Encode(answer);
  return judged;
}

DiallerOpening::DiallerOpening(const JobSecret& secret, std::string_view job_id)
    : secret_(secret), job_id_(job_id), nonce_(MakeNonce()) {}

std::string DiallerOpening::FirstBytes() {
  return std::string(kControlPreamble) + static_cast<char>(kControlVersion);
}

std::optional<DiallerOpening::Failure> DiallerOpening::TakeChallenge(std::string_view frame) {
  const Json json = Decode(frame);
  auto version = NumberAt(json, "version");
  if (!version) return NoAnswer();
  if (*version != kControlVersion) {
    return Failure{DialVerdict::kOtherVersion,
                   "the rankrun there speaks version " + std::to_string(*version) +
                       " of the control protocol, this one version " +
                       std::to_string(kControlVersion) + ": all nodes need the same rankrun"};
  }
  auto nonce = BytesAt(json, "nonce");
  if (!nonce || nonce->size() != kNonceBytes) return NoAnswer();
  server_nonce_ = std::move(*nonce);
  return std::nullopt;
}

std::string DiallerOpening::Hello(std::string payload) {
  RANKRUN_CHECK(payload.size() <= kMostHelloBytes, "a hello is too large to be sent");
  hello_ = std::move(payload);
  const std::string proof =
      secret_.Prove({ProofRole::kDialler, server_nonce_, nonce_, job_id_, hello_});
  return Encode({{"job", Bytes(job_id_)},
                 {"nonce", Bytes(nonce_)},
                 {"payload", Bytes(hello_)},
                 {"proof", Bytes(proof)}});
}

std::optional<DiallerOpening::Failure> DiallerOpening::TakeAnswer(std::string_view frame) const {
  const Json json = Decode(frame);
  auto refusal = NumberAt(json, "refusal");
  auto job_id = BytesAt(json, "job");
  if (!refusal || !job_id) return NoAnswer();
  switch (static_cast<OpeningRefusal>(*refusal)) {
    case OpeningRefusal::kNone:
      return CheckServer(BytesAt(json, "proof").value_or(""));
    case OpeningRefusal::kOtherJob:
      return Failure{
          DialVerdict::kOtherJob,
          "job " + Quoted(*job_id) + " is there, this node is of job " + Quoted(job_id_)};
    case OpeningRefusal::kNoSecret:
      return Failure{DialVerdict::kWrongSecret, "the job there has a secret, this node has none"};
    case OpeningRefusal::kOnlySecret:
      return Failure{DialVerdict::kWrongSecret,
                     "this node has a job secret, the job there has none"};
    case OpeningRefusal::kWrongSecret:
      return Failure{DialVerdict::kWrongSecret, "wrong job secret"};
  }
  return NoAnswer();
}

std::optional<DiallerOpening::Failure> DiallerOpening::CheckServer(std::string_view proof) const {
  const ProofSubject subject{ProofRole::kServer, server_nonce_, nonce_, job_id_, hello_};
  if (secret_.IsProof(proof, subject)) return std::nullopt;
  return Failure{DialVerdict::kWrongSecret, "what answers there does not know the job secret"};
}

}  // namespace rankrun::agent

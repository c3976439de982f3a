#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rankrun::agent {

// Selects libsodium's fastest code for this processor. The first call takes 0.03
// ms.
void InitSodium();

// Returns `bytes` as libsodium takes them.
const unsigned char* RawBytes(std::string_view bytes);

// Random bytes for one handshake, so that a proof is worthless in another one.
constexpr size_t kNonceBytes = 32;
std::string MakeNonce();

// The side that proves the secret. It is part of the proof, so that nobody can
// return the proof of the other side. The letters are part of the protocol.
enum class ProofRole : uint8_t { kClient = 'd', kServer = 's' };

// The data that a proof covers.
struct ProofSubject {
  ProofRole role;
  std::string_view server_nonce;
  std::string_view client_nonce;
  std::string_view server_key;
  std::string_view client_key;
  std::string_view job_id;
  std::string_view payload;
};

// The shared secret of the nodes of a job, or none. Proofs are keyed hashes
// (BLAKE2b by libsodium) of their subject, so they do not reveal the secret.
// The secret is never logged.
// Thread: one at a time.
class JobSecret {
 public:
  // Empty `bytes`: the job has no secret.
  explicit JobSecret(std::string_view bytes);
  JobSecret(const JobSecret&) = delete;
  JobSecret& operator=(const JobSecret&) = delete;
  ~JobSecret();

  bool exists() const { return key_.has_value(); }

  // Returns the proof of the subject; empty without a secret.
  std::string Prove(const ProofSubject& subject) const;
  // Returns whether `proof` is right, in constant time. Without a secret, only
  // the empty proof is right.
  bool IsProof(std::string_view proof, const ProofSubject& subject) const;

 private:
  std::optional<std::array<unsigned char, 32>> key_;
};

}  // namespace rankrun::agent

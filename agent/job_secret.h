#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rankrun::agent {

// Random bytes, used once: they make a proof worthless for another connection.
constexpr size_t kNonceBytes = 32;
std::string MakeNonce();

// Who proves something: the proof of one side is none for the other.
enum class ProofRole : uint8_t { kDialler = 'd', kServer = 's' };

// What a proof is about.
struct ProofSubject {
  ProofRole role;
  std::string_view server_nonce;
  std::string_view dialler_nonce;
  std::string_view job_id;
  std::string_view payload;
};

// What the nodes of a job know and a stranger does not; or that there is none.
// Proofs are hashes with a key (BLAKE2b by libsodium) of all that they are
// about, so they tell nothing of the secret. It is never logged.
// Thread: one at a time.
class JobSecret {
 public:
  // `bytes` empty: there is none.
  explicit JobSecret(std::string_view bytes);
  JobSecret(const JobSecret&) = delete;
  JobSecret& operator=(const JobSecret&) = delete;
  ~JobSecret();

  bool exists() const { return key_.has_value(); }

  // Empty without a secret.
  std::string Prove(const ProofSubject& subject) const;
  // In a time that does not depend on what is in `proof`. Without a secret,
  // the empty proof is the right one.
  bool IsProof(std::string_view proof, const ProofSubject& subject) const;

 private:
  std::optional<std::array<unsigned char, 32>> key_;
};

}  // namespace rankrun::agent

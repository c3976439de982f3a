#include "agent/control/job_secret.h"

#include <sodium.h>

#include "base/check.h"

namespace rankrun::agent {
namespace {

constexpr size_t kProofBytes = 32;

// Adds the length first, so that different lists of fields have different
// hashes.
void Add(crypto_generichash_state& state, std::string_view field) {
  std::array<unsigned char, 8> length;
  for (size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<unsigned char>(uint64_t{field.size()} >> 8 * i & 0xFF);
  }
  crypto_generichash_update(&state, length.data(), length.size());
  crypto_generichash_update(&state, RawBytes(field), field.size());
}

}  // namespace

void InitSodium() { RANKRUN_CHECK(sodium_init() >= 0, "libsodium cannot be used"); }

const unsigned char* RawBytes(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

std::string MakeNonce() {
  InitSodium();
  std::string nonce(kNonceBytes, '\0');
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

JobSecret::JobSecret(std::string_view bytes) {
  if (bytes.empty()) return;
  InitSodium();
  auto& key = key_.emplace();
  crypto_generichash(key.data(), key.size(), RawBytes(bytes), bytes.size(), nullptr, 0);
}

JobSecret::~JobSecret() {
  if (key_) sodium_memzero(key_->data(), key_->size());
}

std::string JobSecret::Prove(const ProofSubject& subject) const {
  if (!key_) return "";
  crypto_generichash_state state;
  crypto_generichash_init(&state, key_->data(), key_->size(), kProofBytes);
  const char role = static_cast<char>(subject.role);
  for (std::string_view field :
       {std::string_view(&role, 1), subject.server_nonce, subject.client_nonce, subject.server_key,
        subject.client_key, subject.job_id, subject.payload}) {
    Add(state, field);
  }
  std::string proof(kProofBytes, '\0');
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(proof.data()), proof.size());
  return proof;
}

bool JobSecret::IsProof(std::string_view proof, const ProofSubject& subject) const {
  std::string right = Prove(subject);
  return proof.size() == right.size() &&
         sodium_memcmp(proof.data(), right.data(), right.size()) == 0;
}

}  // namespace rankrun::agent

#include "comm/tcp/handshake.h"

#include <sodium.h>

#include <algorithm>

#include "base/check.h"

namespace rankrun::comm::tcp {
namespace {

constexpr std::string_view kMagic{"rankrun\x02", 8};  // the last byte is the version

static_assert(kMagic.size() + 3 * sizeof(uint32_t) + kNonceBytes == kHelloBytes);
static_assert(kProofBytes >= crypto_generichash_BYTES_MIN);
static_assert(std::tuple_size_v<PairKey> == crypto_generichash_KEYBYTES);

enum class Role : char { kDialer = 'D', kListener = 'L' };

void StartSodium() { RANKRUN_CHECK(sodium_init() >= 0, "libsodium cannot be used"); }

std::string MakeNonce() {
  StartSodium();
  std::string nonce(kNonceBytes, '\0');
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

std::string Bytes(uint32_t number) {
  std::string bytes(sizeof number, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(number >> 8 * i & 0xFF);
  return bytes;
}

uint32_t NumberAt(std::string_view bytes, size_t offset) {
  uint32_t number = 0;
  for (size_t i = 0; i < sizeof number; ++i) {
    number |= uint32_t{static_cast<unsigned char>(bytes[offset + i])} << 8 * i;
  }
  return number;
}

std::string HelloOf(const StreamId& id) {
  return std::string(kMagic) + Bytes(id.dialer) + Bytes(id.listener) + Bytes(id.stream) +
         MakeNonce();
}

// `hello` has the size of a hello.
StreamId IdOf(std::string_view hello) {
  constexpr size_t kNumber = sizeof(uint32_t);
  return {NumberAt(hello, kMagic.size()), NumberAt(hello, kMagic.size() + kNumber),
          NumberAt(hello, kMagic.size() + 2 * kNumber)};
}

const unsigned char* Raw(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// The fields have fixed sizes, so no two lists of fields are the same bytes.
std::string Prove(const PairKey& key, Role role, std::string_view hello,
                  std::string_view listener_nonce) {
  std::string subject{static_cast<char>(role)};
  subject.append(hello).append(listener_nonce);
  std::string proof(kProofBytes, '\0');
  crypto_generichash(reinterpret_cast<unsigned char*>(proof.data()), proof.size(), Raw(subject),
                     subject.size(), key.data(), key.size());
  return proof;
}

bool AreEqual(std::string_view proof, std::string_view right) {
  return proof.size() == right.size() &&
         sodium_memcmp(proof.data(), right.data(), right.size()) == 0;
}

HandshakeStep Failed() { return {.state = HandshakeStep::State::kFailed}; }

}  // namespace

RankKey NewRankKey() {
  StartSodium();
  RankKey key;
  randombytes_buf(key.data(), key.size());
  return key;
}

PairKey KeyRing::Of(uint32_t one, uint32_t other) const {
  auto [lower, higher] = std::minmax(one, other);
  std::string subject = "rankrun: key of two ranks" + Bytes(lower) + Bytes(higher);
  for (uint32_t rank : {lower, higher}) subject.append(keys_[rank].begin(), keys_[rank].end());
  subject += group_;  // last, because its size varies
  StartSodium();
  PairKey key;
  crypto_generichash(key.data(), key.size(), Raw(subject), subject.size(), nullptr, 0);
  return key;
}

DialerHandshake::DialerHandshake(const KeyRing& keys, const StreamId& id)
    : key_(keys.Of(id.dialer, id.listener)), hello_(HelloOf(id)) {}

HandshakeStep DialerHandshake::Take(std::string_view bytes) {
  if (bytes.size() != wants()) return Failed();
  if (has_proven_) {
    return bytes[0] == kAccepted ? HandshakeStep{.state = HandshakeStep::State::kProven} : Failed();
  }
  std::string_view nonce = bytes.substr(0, kNonceBytes);
  std::string_view proof = bytes.substr(kNonceBytes);
  if (!AreEqual(proof, Prove(key_, Role::kListener, hello_, nonce))) return Failed();
  has_proven_ = true;
  return {HandshakeStep::State::kContinues, Prove(key_, Role::kDialer, hello_, nonce)};
}

bool ListenerHandshake::CanContinue(std::string_view bytes) const {
  return !hello_.empty() || kMagic.starts_with(bytes.substr(0, kMagic.size()));
}

HandshakeStep ListenerHandshake::Take(std::string_view bytes) {
  if (bytes.size() != wants()) return Failed();
  if (hello_.empty()) return TakeHello(bytes);
  if (!AreEqual(bytes, Prove(key_, Role::kDialer, hello_, nonce_))) return Failed();
  return {HandshakeStep::State::kProven, std::string(1, kAccepted)};
}

// Only higher ranks connect to this one.
HandshakeStep ListenerHandshake::TakeHello(std::string_view hello) {
  if (!hello.starts_with(kMagic)) return Failed();
  id_ = IdOf(hello);
  bool is_for_us = id_.listener == own_rank_ && id_.dialer > own_rank_;
  if (!is_for_us || id_.dialer >= keys_.ranks() || id_.stream >= keys_.streams()) return Failed();
  hello_ = hello;
  key_ = keys_.Of(id_.dialer, id_.listener);
  nonce_ = MakeNonce();
  return {HandshakeStep::State::kContinues, nonce_ + Prove(key_, Role::kListener, hello_, nonce_)};
}

}  // namespace rankrun::comm::tcp

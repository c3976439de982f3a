#include "agent/control/session_cipher.h"

#include <sodium.h>

#include "base/log.h"

namespace rankrun::agent {
namespace {

static_assert(kSealBytes == crypto_secretstream_xchacha20poly1305_ABYTES);
static_assert(kKeyBytes == crypto_kx_SESSIONKEYBYTES && kKeyBytes == crypto_kx_PUBLICKEYBYTES &&
              kKeyBytes == crypto_kx_SECRETKEYBYTES &&
              kKeyBytes == crypto_secretstream_xchacha20poly1305_KEYBYTES);

unsigned char* Raw(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

}  // namespace

SessionKeys::~SessionKeys() {
  sodium_memzero(receive.data(), receive.size());
  sodium_memzero(send.data(), send.size());
}

KeyPair::KeyPair(ProofRole role) : role_(role) {
  InitSodium();
  crypto_kx_keypair(public_key_.data(), secret_key_.data());
}

KeyPair::~KeyPair() { sodium_memzero(secret_key_.data(), secret_key_.size()); }

std::string_view KeyPair::public_key() const {
  return {reinterpret_cast<const char*>(public_key_.data()), public_key_.size()};
}

bool KeyPair::Derive(std::string_view peer_key, SessionKeys& keys) const {
  if (peer_key.size() != kKeyBytes) return false;
  auto derive =
      role_ == ProofRole::kClient ? crypto_kx_client_session_keys : crypto_kx_server_session_keys;
  return derive(keys.receive.data(), keys.send.data(), public_key_.data(), secret_key_.data(),
                RawBytes(peer_key)) == 0;
}

struct SessionCipher::State {
  ~State() { sodium_memzero(this, sizeof *this); }

  SessionKeys::Key receive_key;
  std::array<char, crypto_secretstream_xchacha20poly1305_HEADERBYTES> header;
  crypto_secretstream_xchacha20poly1305_state send;
  crypto_secretstream_xchacha20poly1305_state receive;
};

SessionCipher::SessionCipher(const SessionKeys& keys) : state_(new State{}) {
  state_->receive_key = keys.receive;
  crypto_secretstream_xchacha20poly1305_init_push(
      &state_->send, reinterpret_cast<unsigned char*>(state_->header.data()), keys.send.data());
}

SessionCipher::~SessionCipher() = default;

std::string_view SessionCipher::header() const {
  return {state_->header.data(), state_->header.size()};
}

bool SessionCipher::SetPeerHeader(std::string_view header) {
  if (header.size() != state_->header.size()) return false;
  return crypto_secretstream_xchacha20poly1305_init_pull(&state_->receive, RawBytes(header),
                                                         state_->receive_key.data()) == 0;
}

std::optional<std::string> SessionCipher::Seal(std::string_view payload) {
  if (payload.size() > kMaxMessageBytes) {
    LogError("a control message of " + std::to_string(payload.size()) +
             " bytes is dropped, because a frame holds " + std::to_string(kMaxMessageBytes));
    return std::nullopt;
  }
  std::string sealed(payload.size() + kSealBytes, '\0');
  crypto_secretstream_xchacha20poly1305_push(&state_->send, Raw(sealed), nullptr, RawBytes(payload),
                                             payload.size(), nullptr, 0, 0);
  return EncodeFrame(sealed);
}

std::optional<std::string> SessionCipher::Open(std::string_view sealed) {
  if (sealed.size() < kSealBytes) return std::nullopt;
  std::string payload(sealed.size() - kSealBytes, '\0');
  unsigned char tag = 0;
  int opened = crypto_secretstream_xchacha20poly1305_pull(
      &state_->receive, Raw(payload), nullptr, &tag, RawBytes(sealed), sealed.size(), nullptr, 0);
  if (opened != 0) return std::nullopt;
  return payload;
}

}  // namespace rankrun::agent

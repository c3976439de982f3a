#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/control/control_frame.h"
#include "agent/control/job_secret.h"

// Encryption of a connection after its handshake: X25519 for the keys, and
// libsodium's secretstream (XChaCha20-Poly1305) for the frames. Each frame
// proves that it is the next one of its sender.
namespace rankrun::agent {

// Number of bytes by which a sealed frame is longer than its message.
constexpr size_t kSealBytes = 17;

// Error text for a frame that does not open.
inline constexpr const char* kForgedMessage =
    "a message was changed, repeated or removed on its way";

// Largest message in a sealed frame.
constexpr size_t kMaxMessageBytes = kMaxFrameBytes - kSealBytes;

// Size of all keys.
constexpr size_t kKeyBytes = 32;

// Keys of the two directions of a connection, as one side sees them.
struct SessionKeys {
  using Key = std::array<unsigned char, kKeyBytes>;

  Key receive{};
  Key send{};

  SessionKeys() = default;
  SessionKeys(const SessionKeys&) = delete;
  SessionKeys& operator=(const SessionKeys&) = delete;
  ~SessionKeys();
};

// Random key pair of one side of one handshake. Because it lives no longer, a
// secret that leaks later opens no recorded connection.
// Thread: one at a time.
class KeyPair {
 public:
  explicit KeyPair(ProofRole role);
  KeyPair(const KeyPair&) = delete;
  KeyPair& operator=(const KeyPair&) = delete;
  ~KeyPair();

  std::string_view public_key() const;

  // Computes the keys that both sides share. Returns false if `peer_key` is not
  // the public key of an honest peer.
  bool Derive(std::string_view peer_key, SessionKeys& keys) const;

 private:
  const ProofRole role_;
  std::array<unsigned char, kKeyBytes> public_key_;
  std::array<unsigned char, kKeyBytes> secret_key_;
};

// One side of an encrypted connection.
// Thread: one at a time.
class SessionCipher {
 public:
  explicit SessionCipher(const SessionKeys& keys);
  SessionCipher(const SessionCipher&) = delete;
  SessionCipher& operator=(const SessionCipher&) = delete;
  ~SessionCipher();

  // First bytes of our direction, which the peer needs before the first frame.
  std::string_view header() const;
  // Returns false if `header` has another length.
  bool SetPeerHeader(std::string_view header);

  // Returns `payload` as the next frame, for the stream. Returns nothing, and
  // logs an error, for more than kMaxMessageBytes, because peers determine the
  // sizes of some messages.
  std::optional<std::string> Seal(std::string_view payload);
  // Returns the message in the peer's next frame, or nothing if somebody has
  // changed, repeated or removed a frame. The connection cannot be used then.
  std::optional<std::string> Open(std::string_view sealed);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace rankrun::agent

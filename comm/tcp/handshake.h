#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/tcp/peer_address.h"

// Mutual authentication of a connection between two ranks of a group. The
// dialer is the rank that connects, the listener the one that accepts.
//
//   dialer -> listener   hello: "rankrun", version, ranks of both, stream, nonce
//   listener -> dialer   nonce, proof
//   dialer -> listener   proof
//   listener -> dialer   1: accepted
//
// A proof is a hash (BLAKE2b by libsodium) of the sender's role, the hello and
// the listener's nonce, keyed with the key of the pair. Both nonces are fresh,
// so that a recorded handshake proves nothing. Later bytes are neither encrypted
// nor authenticated. Integers are little-endian. Pure, except that nonces are
// random.
namespace rankrun::comm::tcp {

constexpr size_t kNonceBytes = 32;
constexpr size_t kProofBytes = 32;
constexpr size_t kHelloBytes = 8 + 3 * sizeof(uint32_t) + kNonceBytes;
constexpr char kAccepted = 1;

// Numbers of streams: data stream i has number i + 1.
constexpr uint32_t kControlStream = 0;

using PairKey = std::array<unsigned char, 32>;

RankKey NewRankKey();

// Connection that a handshake is about, by group ranks.
struct StreamId {
  uint32_t dialer;
  uint32_t listener;
  uint32_t stream;

  bool operator==(const StreamId&) const = default;
};

// Keys of all members of a group, as one rank knows them. Immutable.
class KeyRing {
 public:
  // `group` differs for each group of a job. `keys` are by group rank.
  KeyRing(std::string group, std::vector<RankKey> keys, uint32_t streams)
      : group_(std::move(group)), keys_(std::move(keys)), streams_(streams) {}

  // Returns the key that only the two ranks, in either order, use.
  PairKey Of(uint32_t one, uint32_t other) const;

  uint32_t ranks() const { return static_cast<uint32_t>(keys_.size()); }
  uint32_t streams() const { return streams_; }  // between two ranks, with control

 private:
  const std::string group_;
  const std::vector<RankKey> keys_;
  const uint32_t streams_;
};

// Result of the bytes that a side of a handshake takes.
struct HandshakeStep {
  enum class State {
    kContinues,
    kProven,  // the peer is authentic; `reply` ends the handshake
    kFailed,  // the peer is a stranger
  };
  State state;
  std::string reply = {};  // to send; may be empty
};

// The caller reads exactly wants() bytes and passes them to Take, until the
// handshake is over. The dialer sends first() before.
class DialerHandshake {
 public:
  DialerHandshake(const KeyRing& keys, const StreamId& id);

  const std::string& first() const { return hello_; }
  size_t wants() const { return has_proven_ ? 1 : kNonceBytes + kProofBytes; }
  HandshakeStep Take(std::string_view bytes);

 private:
  const PairKey key_;
  const std::string hello_;
  bool has_proven_ = false;  // its proof is sent
};

class ListenerHandshake {
 public:
  // `keys` must outlive the object.
  ListenerHandshake(const KeyRing& keys, uint32_t own_rank) : keys_(keys), own_rank_(own_rank) {}

  size_t wants() const { return hello_.empty() ? kHelloBytes : kProofBytes; }
  HandshakeStep Take(std::string_view bytes);

  // Returns whether the next message can begin with `bytes`, so that most
  // strangers are closed at their first byte.
  bool CanContinue(std::string_view bytes) const;

  // Valid once the peer is proven.
  const StreamId& id() const { return id_; }

 private:
  HandshakeStep TakeHello(std::string_view hello);

  const KeyRing& keys_;
  const uint32_t own_rank_;
  StreamId id_{};
  PairKey key_{};
  std::string hello_;  // of the dialer; empty before it
  std::string nonce_;
};

}  // namespace rankrun::comm::tcp

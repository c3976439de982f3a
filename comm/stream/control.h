#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/stream/call_table.h"
#include "comm/stream/channel.h"

namespace rankrun::comm::stream {

// Control connections to all peers, and the knowledge about peers that comes
// from them: losses, failures with their reasons, departures, and the collective
// that each peer has called.
// Thread: any, with mutex() held where a function requires it.
class Control final : public FrameHandler {
 public:
  static constexpr uint64_t kAllCalls = ~uint64_t{0};  // also those to come

  // `messages` gets the frames of messages.
  // `connections`: by group rank.
  Control(const BackendConfig& config, std::vector<std::unique_ptr<Connection>> connections,
          FrameHandler& messages);

  Mutex& mutex() RETURN_CAPABILITY(mutex_) { return mutex_; }
  int ranks() const { return static_cast<int>(global_ranks_.size()); }
  int rank() const { return rank_; }
  std::string NameOf(int rank) const;  // "rank 3", the global rank

  // Reads and writes whatever is possible without waiting. Returns whether anything moved.
  bool Move() REQUIRES(mutex_);
  // As Move, but does nothing if another thread holds the mutex.
  bool TryMove() EXCLUDES(mutex_);
  void Send(int peer, OutgoingFrame frame) REQUIRES(mutex_);
  // Stops to use memory of the program for frames of any peer.
  void Release(const std::byte* data, size_t bytes) REQUIRES(mutex_);
  // Readable when a control connection is.
  int fd() const { return epoll_.get(); }

  // Records that this rank calls a collective. Errors: the group has ended.
  Result<void> Enter(const Operation& operation, uint64_t fingerprint);
  // Records that this rank has the result of its call, unless a frame that has arrived shows
  // that the call fails on a peer, or the group has ended. While a peer that may give up the
  // call has not decided, waits until `deadline`, or a short time.
  Result<void> Conclude(TimePoint deadline) EXCLUDES(mutex_);
  // Sends this rank's present call to `peer`, which compares it with its own.
  void SendCall(int peer) REQUIRES(mutex_);
  // Whether a collective must look for its end: a peer is lost or failed, or its call differs.
  bool alarmed() const { return alarmed_.load(std::memory_order_acquire); }
  // Returns the number of a call of a peer that differs from this rank's.
  std::optional<uint64_t> difference() REQUIRES(mutex_) { return calls_.difference(); }
  // Records that a frame of a collective of `peer` is not the one expected.
  void NoteDifference(int peer, const FrameHeader& header) REQUIRES(mutex_);
  // Asks all peers for their calls of that number, and waits a short time for them. Returns the
  // calls of all ranks, or empty if all known calls are alike.
  std::string CompareCalls(uint64_t number);
  // Asks all peers to answer. They conclude no call until Continue or a farewell of this rank.
  void Probe() REQUIRES(mutex_);
  bool IsProbeOver() REQUIRES(mutex_);  // they have answered, or have had the time for it
  // Returns the silent peers: "; no answer from rank 3"; empty: there are none; no value: all are
  // in this rank's call, or in a later one.
  std::optional<std::string> DescribeSilent() REQUIRES(mutex_);
  void Continue() REQUIRES(mutex_);

  // Records that a connection to `peer` is lost.
  void Lose(int peer, const std::string& why) REQUIRES(mutex_);
  // Returns the error by which waits must end: the group has ended, a peer has failed, a worker
  // has died. A peer that has failed after `call` has done its part of that.
  std::optional<Error> FindEnd(TimePoint wait_began, uint64_t call = kAllCalls) REQUIRES(mutex_);
  // Returns the error for the loss of `peer`, if it is lost and the reason is known or no longer
  // expected. If `peer` has left, the reason may be that another rank is lost.
  std::optional<Error> FindLoss(int peer) REQUIRES(mutex_);
  // The same for any peer that has not announced that it leaves.
  std::optional<Error> FindSilentLoss() REQUIRES(mutex_);

  // Ends the group for good, once: sends the peers `for_others`. False: it had ended before.
  bool End(const Error& why, const Error& for_others) REQUIRES(mutex_);
  const std::optional<Error>& ended() REQUIRES(mutex_) { return ended_; }
  // Tells the peers that this rank needs them no more.
  void SendLeave() REQUIRES(mutex_);
  // Waits until the kernel has taken everything, up to `patience`.
  void Flush(std::chrono::milliseconds patience) REQUIRES(mutex_);
  void Close() REQUIRES(mutex_);

 private:
  struct Farewell {
    bool leaves;          // without a failure
    uint64_t first_call;  // that fails on the peer
    Error error;
  };
  struct Loss {
    TimePoint since;
    std::string why;
  };
  struct PeerState {
    std::unique_ptr<Channel> channel;
    std::vector<std::byte> farewell_text;
    std::optional<Farewell> farewell;
    std::optional<Loss> loss;
    uint64_t call_sent = 0;        // number of this rank's call that was sent last
    bool waits_for_space = false;  // the kernel took only a part
    bool has_answered = true;      // the last probe
    uint64_t answered_call = 0;    // that the peer was in
    bool may_give_up = false;      // has sent a probe, and not yet what it does
  };

  std::byte* SpaceFor(int peer, const FrameHeader& header) override;
  void OnFrame(int peer, const FrameHeader& header) override;
  void OnWritten(int peer, const OutgoingFrame& frame) override;

  PeerState& StateOf(int peer) REQUIRES(mutex_) { return peers_[static_cast<size_t>(peer)]; }
  bool KnowsAllCalls(uint64_t number) REQUIRES(mutex_);
  std::vector<int> SilentPeers() REQUIRES(mutex_);  // global ranks
  // Moves until `done` or `until`.
  template <typename Done>
  void MoveUntil(TimePoint until, const Done& done) REQUIRES(mutex_);
  std::optional<int> UndecidedPeer() REQUIRES(mutex_);  // may_give_up
  void NoteCall(int peer, const FrameHeader& header) REQUIRES(mutex_);
  void SendCallOf(int peer, uint64_t number) REQUIRES(mutex_);
  Error LostError(int peer) REQUIRES(mutex_);
  std::optional<int> FirstSilentLoss() REQUIRES(mutex_);
  void OnFarewell(int peer, const FrameHeader& header) REQUIRES(mutex_);
  void SendFarewell(uint8_t code, const std::string& text) REQUIRES(mutex_);
  void CheckChannel(int peer) REQUIRES(mutex_);
  void Watch(int peer, bool for_space) REQUIRES(mutex_);
  std::optional<Error> FirstFailure(uint64_t call) REQUIRES(mutex_);

  const std::vector<int> global_ranks_;
  const int rank_;
  const DeathWatch deaths_;
  FrameHandler& messages_;
  const Fd epoll_;
  std::atomic<bool> alarmed_ = false;
  Mutex mutex_;
  std::vector<PeerState> peers_ GUARDED_BY(mutex_);
  CallTable calls_ GUARDED_BY(mutex_);
  uint64_t concluded_ GUARDED_BY(mutex_) = 0;  // last call whose result this rank has
  std::optional<Error> ended_ GUARDED_BY(mutex_);
  TimePoint probe_until_ GUARDED_BY(mutex_) = {};
};

}  // namespace rankrun::comm::stream

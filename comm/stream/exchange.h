#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "comm/core/backend.h"
#include "comm/core/executor.h"
#include "comm/stream/control.h"
#include "comm/stream/patience.h"
#include "comm/stream/stream.h"

namespace rankrun::comm::stream {

// Moves the blocks of collectives over the data streams, in the caller's thread.
// Large blocks are split among the streams of a pair. Every frame describes the
// sender's call, so that a difference of calls costs no message of its own.
// Thread: one at a time; Close: any.
class StreamExchange final : public PairTransport {
 public:
  // `streams`: by group rank; those of this rank are empty.
  StreamExchange(const BackendConfig& config, std::vector<std::vector<Stream>> streams,
                 Control& control, const Patience& patience);

  // Begins a collective, or a part of one that Control has entered. Its time-out counts from now.
  void Begin(const Call& call);
  // Errors: kTimeout is this rank's own; all others are also those of the peers.
  Result<void> Exchange(const Outgoing* outgoing, const Incoming* incoming) override;
  // Exchanges the calls of all ranks before any data moves.
  Result<void> CompareAllCalls();
  // Returns why the call under way fails, as far as this rank knows.
  std::optional<Error> FindEnd();
  TimePoint deadline() const { return deadline_; }

  // Ends all exchanges. No block is touched afterwards.
  void Close() EXCLUDES(mutex_);

 private:
  using Streams = std::vector<Stream>;

  Streams& StreamsTo(int peer) REQUIRES(mutex_) { return streams_[static_cast<size_t>(peer)]; }
  void BeginStep(const Outgoing* outgoing, const Incoming* incoming) REQUIRES(mutex_);
  // Moves what the kernel takes and has. Returns whether anything moved.
  bool MoveStep() REQUIRES(mutex_);
  bool SendSome() REQUIRES(mutex_);
  bool ReceiveSome() REQUIRES(mutex_);
  void CheckHeader(Stream& stream) REQUIRES(mutex_);
  void NoteLoss(int peer, const Stream& stream) REQUIRES(mutex_);
  std::string DescribeDifference(const FrameHeader& header) const;
  bool StepIsDone() REQUIRES(mutex_);
  std::optional<Error> RestOrEnd(int round);
  void Continue();
  void AdaptPolls(int round);
  void Sleep(std::chrono::milliseconds limit);
  void AddWaits() REQUIRES(mutex_);
  std::optional<Error> TimeOut();
  Error TimedOut(int awaited) REQUIRES(control_.mutex());
  Error WithOwnTimeOut(Error end);
  int AwaitedPeer() EXCLUDES(mutex_);

  const int rank_;
  const DeathWatch deaths_;
  Control& control_;
  const Patience& patience_;
  int polls_;  // at present, up to those of patience_

  // The collective under way:
  FrameHeader header_{};
  TimePoint began_ = {};
  TimePoint deadline_ = {};
  TimePoint next_compare_ = {};
  // The step under way:
  const Outgoing* outgoing_ = nullptr;
  const Incoming* incoming_ = nullptr;
  std::optional<TimePoint> asked_at_;  // after the time-out; until more data arrives
  bool is_extended_ = false;           // deadline_ is later than the call's time-out says
  std::optional<int> closed_peer_;     // whose stream is closed
  std::optional<Error> difference_;    // between a frame and the one expected
  std::vector<pollfd> waits_;          // memory of Sleep

  Mutex mutex_;  // held while blocks are touched
  std::vector<Streams> streams_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace rankrun::comm::stream

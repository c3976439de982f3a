#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/shm/schedule.h"
#include "comm/shm/segment.h"
#include "comm/shm/wait.h"

namespace rankrun::comm::shm {

// Rendezvous of the ranks at each collective. Each rank publishes its call in a
// call line that the others read; data of one chunk may travel with the call. No rank
// continues before all ranks have published the same call.
// Thread: one at a time. Lifetime: segment and waiter outlive it.
class CallRendezvous final : public WaitTarget {
 public:
  // `buffer_bytes`: size of a buffer of round 0 (schedule.h).
  CallRendezvous(const Segment& segment, Waiter& waiter, size_t buffer_bytes);

  // Begins the next collective. The caller may then fill the line of this rank
  // and its buffer for round 0. False: TakeError() has the cause.
  bool Begin(const Call& call);
  uint64_t number() const { return number_; }
  CallLine& mine() const { return line(segment_.rank()); }
  CallLine& line(int rank) const { return segment_.area(rank).lines[number_ % kCallLines]; }

  // Memory for the data that `rank` shows in this call, at most buffer_bytes: its line or
  // its buffer of round 0.
  std::byte* room(int rank, size_t bytes) const {
    if (bytes <= kInlineBytes) return line(rank).data;
    return segment_.bounce(rank) + FirstBufferOf(number_) * buffer_bytes_;
  }

  // Writes to the line how many bytes this rank sends to, and expects from,
  // each rank. A list of equal sizes is written as one number. Must precede
  // Publish.
  void AnnounceBytes(std::span<const size_t> sends, std::span<const size_t> expects);
  // Publishes the call of this rank.
  void Publish() {
    mine().fingerprint = fingerprint_;
    waiter_.Publish(mine().number, number_);
  }
  // Publishes the call for ranks that look, and wakes none.
  void PublishQuietly() {
    mine().fingerprint = fingerprint_;
    mine().number.store(number_, std::memory_order_release);
  }
  // Goes on to the next collective, the second part of the same call, without
  // waiting for the first.
  void Continue() {
    number_ += 1;
    WriteDetails(operation_);
  }
  // Waits for the calls of all ranks and compares them. False: TakeError() has
  // the cause: the calls differ, a rank has refused its call, or an error of
  // the waiter.
  bool AwaitAll();
  // Compares the announced sizes, after AwaitAll. All ranks get the same
  // result; false: TakeError() has the cause. `root`: the only rank with
  // several blocks, or kNoRoot.
  bool BytesAgree(int root);
  Error TakeError();

  // Announces that this rank does not take part. After several refusals in a
  // row it first waits for ranks that may still read the line to be
  // overwritten. False: the wait failed, and so has the group.
  bool Refuse(const Call& call, const std::string& reason);

  std::string Missing(Duration) const override;
  bool Needs(int) const override { return true; }
  std::optional<Error> CheckFailure(Duration waited) const override;

 private:
  bool HasFailed(const Call& call);
  bool Await(uint64_t number);
  bool CatchUp(uint64_t number);
  void WriteDetails(const Operation& operation);
  bool HasCalled(int rank) const;
  uint64_t LastOf(int rank) const;
  std::optional<Error> Refusal() const;
  std::optional<Error> Mismatch() const;
  LineBytes BytesOf(int rank) const;
  uint64_t BytesSent(int from, int to) const;
  uint64_t BytesExpected(int by, int of) const;
  bool SendsParts(int rank, int root) const;
  bool ReceivesParts(int rank, int root) const;
  bool HasUniformBytes(int root) const;
  bool PairAgrees(int from, int to);

  const Segment& segment_;
  Waiter& waiter_;
  const size_t buffer_bytes_;
  const int rank_;
  const int world_size_;
  uint64_t number_ = 0;
  uint64_t first_number_ = 0;  // of the same call, before Continue
  uint64_t awaited_ = 0;       // number_, or an earlier call while catching up
  uint64_t all_called_ = 0;    // last collective that all ranks were seen to call
  bool catching_up_ = false;   // waiting for ranks that are behind a refused call
  uint64_t fingerprint_ = 0;
  LineBytes bytes_{};  // announced by this rank
  Operation operation_{.kind = Operation::Kind::kBarrier};
  std::optional<Error> error_;
};

}  // namespace rankrun::comm::shm

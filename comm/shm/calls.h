#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/backend.h"
#include "comm/shm/segment.h"
#include "comm/shm/wait.h"

namespace rankrun::comm {

// How the ranks come to each collective together: each shows its call in a line
// that the others read, and what fits into the line is exchanged with it. Nobody
// goes on before all have come with the same call.
// Thread: one at a time. Lifetime: segment and waiter outlive it.
class Calls final : public Awaited {
 public:
  Calls(const Segment& segment, Waiter& waiter);

  // Begins the next collective: the line of this rank may be filled then, and
  // its buffer for round 0. False: there is an error in the waiter.
  bool Begin(const Call& call);
  uint64_t number() const { return number_; }
  CallLine& mine() const { return line(segment_.rank()); }
  CallLine& line(int rank) const { return segment_.area(rank).lines[number_ % kCallLines]; }

  // The bytes of the blocks that this rank has for each of the others and wants
  // of each; one number if all are alike. Before Publish.
  void ShowBytes(std::span<const std::size_t> gives, std::span<const std::size_t> wants);
  // Shows that this rank has come.
  void Publish() {
    mine().fingerprint = fingerprint_;
    waiter_.Publish(mine().number, number_);
  }
  // Waits until all have come, and compares. False: TakeError() says why: the
  // ranks' calls differ, one has refused, or any of the waiter's.
  bool AwaitAll();
  // The same for what was shown by ShowBytes, after AwaitAll: false on all ranks
  // if it is on one. `root`: who alone gives or wants, or kNoRoot.
  bool BytesAgree(int root);
  Error TakeError();

  // Not this rank. If it has refused several calls, waits for those who may still
  // read what it would overwrite. False: in vain, and the group has ended.
  bool Refuse(const Call& call, const std::string& reason);

  std::string Missing(Duration) const override;
  bool Needs(int) const override { return true; }
  std::optional<Error> Doubt(Duration waited) const override;

 private:
  bool HasFailed();
  bool Await(uint64_t number);
  bool CatchUp(uint64_t number);
  void Show(const Operation& operation);
  bool HasCome(int rank) const;
  uint64_t LastOf(int rank) const;
  std::optional<Error> Refusal() const;
  std::optional<Error> Mismatch() const;
  LineBytes BytesOf(int rank) const;
  uint64_t Gives(int from, int to) const;
  uint64_t Wants(int by, int of) const;
  bool HasParts(int rank, int root) const;
  bool WantsParts(int rank, int root) const;
  bool AreAlike(int root) const;
  bool PairAgrees(int from, int to);

  const Segment& segment_;
  Waiter& waiter_;
  const int rank_;
  const int world_size_;
  uint64_t number_ = 0;
  uint64_t awaited_ = 0;     // number_ or, to catch up, one before
  uint64_t together_ = 0;    // the last to which all were seen to come
  bool catches_up_ = false;  // waits for those who are behind a refused call
  uint64_t fingerprint_ = 0;
  LineBytes bytes_{};  // what ShowBytes has shown
  Operation operation_{.kind = Operation::Kind::kBarrier};
  std::optional<Error> error_;
};

}  // namespace rankrun::comm

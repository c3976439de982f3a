#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process/process_handle.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/core/backend.h"
#include "comm/shm/error_line.h"
#include "comm/shm/exit_note.h"
#include "comm/shm/layout.h"

namespace rankrun::comm::shm {

// Waits briefly for the agent, if there is one, to report a death. Returns
// whether it has.
bool AwaitDeathMessage(const DeathWatch& deaths);

// Mapped memory that the ranks of one group share, and a handle of each other
// rank's process. The memory file has no name, so nothing stays behind after a
// crash.
// Thread: any, within the rules of layout.h.
class Segment {
 public:
  // Makes the segment on rank 0, finds it through the store on other ranks, and
  // waits until all ranks have mapped it.
  // Errors: kTimeout with the missing ranks; kSystem, on every rank, if one
  // rank cannot map it; kPeerLost; errors of the store.
  static Result<std::unique_ptr<Segment>> Meet(const BackendConfig& config, size_t bounce_bytes);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  // Publishes that this rank has left. Ranks that still wait for it fail.
  ~Segment();

  int rank() const { return rank_; }
  int world_size() const { return layout_.world_size; }
  const SegmentLayout& layout() const { return layout_; }

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  RankArea& area(int rank) const {
    return *reinterpret_cast<RankArea*>(base_ + layout_.AreaAt(rank));
  }
  std::span<uint64_t> table(int rank, uint64_t line) const {
    return {reinterpret_cast<uint64_t*>(base_ + layout_.TableAt(rank, line)),
            2 * static_cast<size_t>(layout_.world_size)};
  }
  std::byte* bounce(int rank) const { return base_ + layout_.BounceAt(rank); }
  std::byte* messages() const { return base_ + layout_.MessagesAt(); }

  // Returns the global rank, which messages to users contain.
  int NameOf(int rank) const { return global_ranks_[static_cast<size_t>(rank)]; }
  // Returns "rank 3" or "ranks 1, 2, 5" with global ranks.
  std::string NamesOf(std::span<const int> ranks) const;

  // Returns the ranks whose process has ended. One system call.
  std::vector<int> Dead() const;
  // Returns the ranks that have destroyed their backend.
  std::vector<int> Left() const;

  ErrorLine& errors() const { return errors_; }
  bool failed() const { return errors_.failed(); }

 private:
  Segment(const BackendConfig& config, const SegmentLayout& layout, std::byte* base);
  static Result<std::unique_ptr<Segment>> Make(const BackendConfig& config,
                                               const SegmentLayout& layout);
  static Result<std::unique_ptr<Segment>> Open(const BackendConfig& config,
                                               const SegmentLayout& layout);
  void PublishProcessInfo() const;
  Result<void> AwaitAll(uint32_t ready, const BackendConfig& config) const;
  Result<void> WatchProcesses();

  const int rank_;
  const std::vector<int> global_ranks_;
  const SegmentLayout layout_;
  std::byte* const base_;
  mutable ErrorLine errors_;
  std::optional<ExitNote> exit_note_;
  Fd file_;                               // on rank 0, until all ranks have opened it
  std::vector<ProcessHandle> processes_;  // by rank; empty for this rank
};

}  // namespace rankrun::comm::shm

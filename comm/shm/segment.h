#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/death_watch.h"
#include "base/fd.h"
#include "base/result.h"
#include "comm/backend.h"
#include "comm/shm/layout.h"

namespace rankrun::comm {

// Whether the agent, if there is one, says how a process has ended: it has a
// moment for that.
bool AwaitWord(const DeathWatch& deaths);

// The memory that the ranks of one group share, mapped, and a descriptor of
// each other rank's process. A memory file without a name: whatever dies,
// nothing is left behind.
// Thread: any, as the layout says.
class Segment {
 public:
  // Meets the other ranks by way of the store and waits until all have mapped
  // it. Errors: kTimeout naming the ranks that did not come; kSystem, on every
  // rank, if one cannot map it; kPeerLost; those of the store.
  static Result<std::unique_ptr<Segment>> Meet(const BackendConfig& config,
                                               std::size_t bounce_bytes);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  // Says that this rank has left; those who wait for it lose it.
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
            2 * static_cast<std::size_t>(layout_.world_size)};
  }
  std::byte* bounce(int rank) const { return base_ + layout_.BounceAt(rank); }
  std::byte* messages() const { return base_ + layout_.MessagesAt(); }

  // As users know it: the global rank.
  int NameOf(int rank) const { return global_ranks_[static_cast<std::size_t>(rank)]; }
  // "rank 3", "ranks 1, 2, 5".
  std::string NamesOf(std::span<const int> ranks) const;

  // Ranks whose process has ended. One system call.
  std::vector<int> Dead() const;
  // Ranks that have destroyed their backend.
  std::vector<int> Left() const;

  // The error of the whole group: the first that is told stays.
  void TellError(const Error& error) const;
  bool failed() const {
    return header().error_state.load(std::memory_order_relaxed) != SegmentHeader::kNone;
  }
  // Nothing while it is being written, or if there is none.
  std::optional<Error> ToldError() const;

 private:
  Segment(const BackendConfig& config, const SegmentLayout& layout, std::byte* base);
  static Result<std::unique_ptr<Segment>> Make(const BackendConfig& config,
                                               const SegmentLayout& layout);
  static Result<std::unique_ptr<Segment>> Open(const BackendConfig& config,
                                               const SegmentLayout& layout);
  void ShowThisProcess() const;
  Result<void> AwaitAll(uint32_t ready, const BackendConfig& config) const;
  Result<void> WatchProcesses();

  const int rank_;
  const std::vector<int> global_ranks_;
  const SegmentLayout layout_;
  std::byte* const base_;
  Fd file_;                    // of rank 0, until all have opened it
  std::vector<Fd> processes_;  // by rank; none of this rank's
};

}  // namespace rankrun::comm

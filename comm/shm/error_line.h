#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "comm/shm/layout.h"

namespace rankrun::comm::shm {

// The first error of a group, in its segment. All ranks fail with it, in the first call whose
// result the failed rank has not, and in later ones.
// Thread: any.
class ErrorLine {
 public:
  explicit ErrorLine(SegmentHeader& header) : header_(header) {}

  bool failed() const {
    return header_.error_state.load(std::memory_order_relaxed) != SegmentHeader::kNone;
  }
  // Publishes the error of the whole group; only the first one is recorded.
  void Publish(const Error& error) const;
  // The same in two steps: a rank that has claimed the line (false: another one has it)
  // decides whether it publishes or drops the claim. Meanwhile no rank concludes a call.
  bool Claim() const;
  void PublishClaimed(const Error& error) const;
  void DropClaim() const { header_.error_state.store(SegmentHeader::kNone); }
  // Waits while a rank has a claim. False: it does not decide, for example because it has died.
  bool AwaitDecision() const;

  // Returns no value if there is no error or it is still being written.
  std::optional<Error> Published() const;
  // The same for an error in that call or before.
  std::optional<Error> PublishedIn(uint64_t call) const;

  // Records that this rank has the result of a call, unless the group has failed in it. Waits
  // while a rank has a claim.
  Result<void> Conclude(uint64_t call) {
    if (failed()) [[unlikely]] {
      if (auto why = WhyFailed(call)) return *std::move(why);
    }
    concluded_.store(call, std::memory_order_relaxed);
    return {};
  }

 private:
  std::optional<Error> WhyFailed(uint64_t call) const;

  SegmentHeader& header_;
  std::atomic<uint64_t> concluded_ = 0;
};

}  // namespace rankrun::comm::shm

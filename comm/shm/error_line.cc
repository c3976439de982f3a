#include "comm/shm/error_line.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/clock.h"

namespace rankrun::comm::shm {
namespace {

// Time in which a rank decides whether it fails. Far longer than that takes, because the rank
// may be preempted.
constexpr std::chrono::milliseconds kDecision{1000};
constexpr std::chrono::microseconds kSlice{20};

}  // namespace

void ErrorLine::Publish(const Error& error) const {
  while (!Claim()) {
    if (!AwaitDecision() || failed()) return;
  }
  PublishClaimed(error);
}

bool ErrorLine::Claim() const {
  uint32_t none = SegmentHeader::kNone;
  return header_.error_state.compare_exchange_strong(none, SegmentHeader::kBeingWritten);
}

void ErrorLine::PublishClaimed(const Error& error) const {
  header_.error_code = static_cast<int32_t>(error.code);
  header_.error_call = concluded_.load(std::memory_order_relaxed) + 1;
  size_t bytes = std::min(error.message.size(), kErrorBytes - 1);
  std::memcpy(header_.error_text, error.message.data(), bytes);
  header_.error_state.store(SegmentHeader::kWritten, std::memory_order_release);
}

bool ErrorLine::AwaitDecision() const {
  TimePoint until = MonotonicClock().Now() + kDecision;
  while (header_.error_state.load(std::memory_order_acquire) == SegmentHeader::kBeingWritten) {
    if (MonotonicClock().Now() >= until) return false;
    std::this_thread::sleep_for(kSlice);
  }
  return true;
}

std::optional<Error> ErrorLine::Published() const {
  if (header_.error_state.load(std::memory_order_acquire) != SegmentHeader::kWritten) {
    return std::nullopt;
  }
  int32_t number = std::atomic_ref(header_.error_code).load(std::memory_order_relaxed);
  bool is_code = number >= 0 && number <= static_cast<int32_t>(ErrorCode::kSystem);
  ErrorCode code = is_code ? static_cast<ErrorCode>(number) : ErrorCode::kSystem;
  return Error{code, TextOf(header_.error_text)};
}

std::optional<Error> ErrorLine::WhyFailed(uint64_t call) const {
  if (AwaitDecision()) return PublishedIn(call);
  return Error{ErrorCode::kSystem, "a rank was about to fail, and has not said why"};
}

std::optional<Error> ErrorLine::PublishedIn(uint64_t call) const {
  auto error = Published();
  bool is_later =
      error && std::atomic_ref(header_.error_call).load(std::memory_order_relaxed) > call;
  return is_later ? std::nullopt : error;
}

}  // namespace rankrun::comm::shm

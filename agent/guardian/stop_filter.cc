#include "agent/guardian/stop_filter.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::milliseconds kSameRequest{500};

}  // namespace

bool StopFilter::Count(const SignalOrigin& origin, TimePoint now) {
  bool pressed_again = last_ == origin && origin.sender == kTerminal;
  bool echo = last_ && last_->signal_number == origin.signal_number && !pressed_again &&
              now - last_at_ < kSameRequest;
  if (echo) return false;
  last_ = origin;
  last_at_ = now;
  requests_ += 1;
  return true;
}

}  // namespace rankrun::agent

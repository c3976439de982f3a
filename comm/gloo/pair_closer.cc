#include "comm/gloo/pair_closer.h"

#include <gloo/transport/pair.h>

#include <chrono>
#include <exception>
#include <utility>

#include "base/process/start_thread.h"

namespace rankrun::comm::gloo {
namespace {

constexpr std::chrono::milliseconds kCheckInterval{4};

}  // namespace

PairCloser::PairCloser(::gloo::Context& context, std::function<bool()> is_over)
    : context_(context), is_over_(std::move(is_over)) {}

Result<void> PairCloser::Start() {
  auto thread = StartThread([this] { Watch(); });
  if (!thread) return thread.error();
  thread_ = *std::move(thread);
  return {};
}

PairCloser::~PairCloser() { Stop(); }

bool PairCloser::Stop() {
  ends_ = true;
  wake_event_.Set();
  if (thread_.joinable()) thread_.join();
  return closes_;
}

void PairCloser::Watch() {
  while (!ends_) {
    if (!closes_ && is_over_()) closes_ = true;
    // Repeat at each interval: a pair that was about to connect opens a new
    // socket.
    for (int peer = 0; closes_ && peer < context_.size; ++peer) {
      if (peer == context_.rank) continue;
      try {
        context_.getPair(peer)->close();
      } catch (const std::exception&) {
        // The pair is closed already.
      }
    }
    wake_event_.SleepUntil(std::chrono::steady_clock::now() + kCheckInterval);
  }
}

}  // namespace rankrun::comm::gloo

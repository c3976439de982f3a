#include "comm/gloo/send_aborter.h"

#include <utility>

#include "base/process/start_thread.h"

namespace rankrun::comm::gloo {
namespace {

constexpr std::chrono::milliseconds kCheckInterval{4};

}  // namespace

// Scope in which the thread watches a wait.
class SendAborter::WaitingScope {
 public:
  WaitingScope(SendAborter& owner, Waiting waiting) : owner_(owner) { Set(waiting); }
  WaitingScope(const WaitingScope&) = delete;
  WaitingScope& operator=(const WaitingScope&) = delete;
  ~WaitingScope() { Set(std::nullopt); }

 private:
  void Set(std::optional<Waiting> waiting) {
    MutexLock lock(owner_.mutex_);
    owner_.waiting_ = waiting;
  }

  SendAborter& owner_;
};

SendAborter::SendAborter(std::function<bool(int peer)> is_gone) : is_gone_(std::move(is_gone)) {
  auto thread = StartThread([this] { Watch(); });
  if (thread) thread_ = *std::move(thread);
}

SendAborter::~SendAborter() {
  {
    MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.NotifyOne();
  if (thread_) thread_->join();
}

bool SendAborter::Wait(::gloo::transport::UnboundBuffer& buffer, int peer,
                       std::chrono::milliseconds timeout) {
  WaitingScope scope(*this, {&buffer, peer});
  return buffer.waitSend(timeout);
}

void SendAborter::Watch() {
  MutexLock lock(mutex_);
  while (!ends_) {
    changed_.WaitUntil(mutex_, MonotonicClock().Now() + kCheckInterval);
    if (!ends_ && waiting_ && is_gone_(waiting_->peer)) waiting_->buffer->abortWaitSend();
  }
}

}  // namespace rankrun::comm::gloo

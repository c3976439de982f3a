#include "comm/gloo/send_aborter.h"

#include <utility>

#include "base/start_thread.h"

namespace rankrun::comm {
namespace {

constexpr std::chrono::milliseconds kLookEvery{4};

}  // namespace

// What is waited for, as the thread sees it.
class SendAborter::Shown {
 public:
  Shown(SendAborter& owner, Waiting waiting) : owner_(owner) { Set(waiting); }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;
  ~Shown() { Set(std::nullopt); }

 private:
  void Set(std::optional<Waiting> waiting) {
    std::lock_guard lock(owner_.mutex_);
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
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_) thread_->join();
}

bool SendAborter::Wait(::gloo::transport::UnboundBuffer& buffer, int peer,
                       std::chrono::milliseconds timeout) {
  const Shown while_it_waits(*this, {&buffer, peer});
  return buffer.waitSend(timeout);
}

void SendAborter::Watch() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    changed_.wait_for(lock, kLookEvery);
    if (!ends_ && waiting_ && is_gone_(waiting_->peer)) waiting_->buffer->abortWaitSend();
  }
}

}  // namespace rankrun::comm

#include "comm/mpi/progress.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/process/start_thread.h"

namespace rankrun::comm::mpi {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Pauses between two polls: a rank that has given up polling by itself sees data at most
// this much later. They grow while nothing changes.
constexpr microseconds kMinPause{50};
constexpr microseconds kMaxPause{1000};

// Time for the other ranks to close their ends, when the process ends.
constexpr milliseconds kPatience{5000};

// Thread that polls all channels of this process.
class Progress {
 public:
  Result<void> Add(std::shared_ptr<Channel> channel) {
    MutexLock lock(mutex_);
    if (!thread_.joinable()) {
      auto started = StartThread([this] { Run(); });
      if (!started) return started.error();
      thread_ = *std::move(started);
    }
    channels_.push_back(std::move(channel));
    changed_.NotifyOne();
    return {};
  }

  void Finish() {
    std::thread ending;
    {
      MutexLock lock(mutex_);
      // A program may end without Destroy.
      for (const auto& channel : channels_) channel->Close();
      TimePoint deadline = MonotonicClock().Now() + kPatience;
      while (!channels_.empty() && emptied_.WaitUntil(mutex_, deadline)) {
      }
      is_stopping_ = true;
      changed_.NotifyOne();
      ending = std::move(thread_);
    }
    if (ending.joinable()) ending.join();
  }

 private:
  void Run() {
    microseconds pause = kMinPause;
    MutexLock lock(mutex_);
    while (!is_stopping_) {
      if (channels_.empty()) {
        emptied_.NotifyAll();
        changed_.Wait(mutex_);
        continue;
      }
      bool has_changed = false;
      std::erase_if(channels_, [&](const auto& channel) {
        Channel::Polled polled = channel->Poll();
        has_changed = has_changed || polled.has_changed;
        return polled.has_parted;
      });
      pause = has_changed ? kMinPause : std::min(2 * pause, kMaxPause);
      MutexUnlock unlock(mutex_);
      std::this_thread::sleep_for(pause);
    }
  }

  Mutex mutex_;
  CondVar changed_;
  CondVar emptied_;
  std::vector<std::shared_ptr<Channel>> channels_ GUARDED_BY(mutex_);
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);
};

// Never destroyed, because other functions at the end of the process may close channels.
Progress& TheProgress() {
  static auto* const kProgress = new Progress;
  return *kProgress;
}

}  // namespace

Result<void> AddToProgress(std::shared_ptr<Channel> channel) {
  return TheProgress().Add(std::move(channel));
}

void FinishProgress() { TheProgress().Finish(); }

}  // namespace rankrun::comm::mpi

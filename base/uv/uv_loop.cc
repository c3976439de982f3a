#include "base/uv/uv_loop.h"

#include <uv.h>

#include "base/check.h"
#include "base/uv/uv_handle.h"
#include "base/uv/uv_timer.h"
#include "base/uv/uv_wakeup.h"

namespace rankrun {
namespace {

uv_loop_t* NewLoop() {
  auto* loop = new uv_loop_t;
  RANKRUN_CHECK(uv_loop_init(loop) == 0, "cannot create an event loop");
  return loop;
}

}  // namespace

void Loop::Deleter::operator()(uv_loop_s* loop) const {
  // These turns only run the close callbacks of handles dropped before the
  // loop. They wait for no event, so they cannot block.
  for (int turn = 0; turn < 2; ++turn) uv_run(loop, UV_RUN_NOWAIT);
  // A pool request that is cancelled or about to finish keeps the loop alive a
  // little longer.
  while (uv_loop_alive(loop) != 0 && loop->active_reqs.count > 0) uv_run(loop, UV_RUN_ONCE);
  RANKRUN_CHECK(uv_loop_close(loop) == 0, "a handle outlives its event loop");
  delete loop;
}

Loop::Loop()
    : loop_(NewLoop()),
      thread_(std::this_thread::get_id()),
      wakeup_(std::make_unique<Wakeup>(*this, [this] { RunPosted(); })) {}

Loop::~Loop() { wakeup_.reset(); }

void Loop::Run() {
  thread_ = std::this_thread::get_id();
  stopped_ = false;
  while (!stopped_) uv_run(loop_.get(), UV_RUN_ONCE);
}

void Loop::Stop() {
  AssertOnLoop();
  stopped_ = true;
  // A due timer runs before the loop waits for events, so keep the loop from
  // waiting now.
  uv_stop(loop_.get());
}

bool Loop::RunUntil(const std::function<bool()>& done, std::chrono::milliseconds timeout) {
  thread_ = std::this_thread::get_id();
  bool expired = false;
  Timer deadline(*this, [&expired] { expired = true; });
  deadline.Start(timeout);
  // Checked before each wait, after the timers that were due.
  std::function<bool()> over = [&] { return done() || expired; };
  UvHandle<uv_prepare_t> before_wait(new uv_prepare_t{});
  uv_prepare_init(loop_.get(), before_wait.get());  // cannot fail; neither can the start
  before_wait->data = &over;
  uv_prepare_start(before_wait.get(), [](uv_prepare_t* handle) {
    if ((*static_cast<std::function<bool()>*>(handle->data))()) uv_stop(handle->loop);
  });
  while (!over()) uv_run(loop_.get(), UV_RUN_ONCE);
  return done();
}

void Loop::Post(std::function<void()> task) {
  {
    MutexLock lock(mutex_);
    posted_.push_back(std::move(task));
  }
  wakeup_->Wake();
}

void Loop::AssertOnLoop() const {
  RANKRUN_CHECK(IsOnLoop(), "called on another thread than the loop's");
}

void Loop::RunPosted() {
  std::vector<std::function<void()>> tasks;
  {
    MutexLock lock(mutex_);
    tasks.swap(posted_);
  }
  for (auto& task : tasks) task();
}

}  // namespace rankrun

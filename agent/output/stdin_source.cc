#include "agent/output/stdin_source.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

constexpr size_t kPieceBytes = 64 * 1024;
constexpr std::chrono::milliseconds kRetryPause{500};

}  // namespace

struct StdinSource::PoolRead {
  StdinSource* owner;  // null once it is gone
  int fd;
  std::string bytes = {};
};

StdinSource::StdinSource(Loop& loop, int fd, std::function<bool()> may_read)
    : loop_(loop),
      fd_(fd),
      may_read_(std::move(may_read)),
      is_terminal_(isatty(fd) != 0),
      answer_(loop, [this] { Answer(); }),
      retry_(loop, [this] { Answer(); }) {}

StdinSource::~StdinSource() {
  if (pool_read_ != nullptr) pool_read_->owner = nullptr;
}

bool StdinSource::HasTerminal() {
  if (!is_terminal_ || paused_) return false;
  if (!std::exchange(opened_, true)) Open();
  return reopened_ && may_read_();
}

void StdinSource::Read(std::function<void(std::string bytes)> on_read) {
  on_read_ = std::move(on_read);
  if (pool_read_ == nullptr) answer_.Start(std::chrono::milliseconds(0));
}

void StdinSource::GiveBack(const std::string& rest) {
  on_read_ = {};
  StopReading();
  kept_.insert(0, rest);
}

void StdinSource::Pause(bool paused) {
  paused_ = paused;
  if (paused) StopReading();
  if (!paused && on_read_ && pool_read_ == nullptr) answer_.Start(std::chrono::milliseconds(0));
}

void StdinSource::StopReading() {
  answer_.Stop();
  retry_.Stop();
  if (poll_ != nullptr) poll_->Stop();
}

// Opens a pipe or a terminal once more to make it non-blocking, because other
// processes may share the descriptor itself.
void StdinSource::Open() {
  struct stat status {};
  fstat(fd_, &status);
  if (S_ISFIFO(status.st_mode) || is_terminal_) {
    std::string path = "/proc/self/fd/" + std::to_string(fd_);
    reopened_.Reset(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
  if (!reopened_ && !S_ISSOCK(status.st_mode)) return;
  auto on_ready = [this] { ReadReady(); };
  auto poll = reopened_ ? Poll::Open(loop_, reopened_.get(), on_ready)
                        : Poll::OpenShared(loop_, fd_, on_ready);
  if (poll) poll_ = std::move(*poll);
}

void StdinSource::Answer() {
  if (paused_) return;
  if (!kept_.empty()) return Deliver(std::exchange(kept_, {}));
  if (!std::exchange(opened_, true)) Open();
  if (poll_ != nullptr) {
    // Read before polling, because poll does not report the end of a named pipe
    // whose writers had gone when it was opened.
    ReadReady();
  } else {
    ReadInPool();
  }
}

void StdinSource::ReadReady() {
  if (is_terminal_ && !may_read_()) {
    poll_->Stop();
    return retry_.Start(kRetryPause);
  }
  std::string bytes(kPieceBytes, '\0');
  ssize_t count = reopened_ ? read(reopened_.get(), bytes.data(), bytes.size())
                            : recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return poll_->Start();
  poll_->Stop();
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  Deliver(std::move(bytes));
}

void StdinSource::ReadInPool() {
  auto job = std::make_shared<PoolRead>(PoolRead{.owner = this, .fd = fd_});
  pool_read_ = job;
  RunInPool(
      loop_,
      [job] {
        job->bytes.resize(kPieceBytes);
        ssize_t count = 0;
        do {
          count = read(job->fd, job->bytes.data(), job->bytes.size());
        } while (count < 0 && errno == EINTR);
        job->bytes.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
      },
      [job] {
        if (job->owner != nullptr) job->owner->OnReadInPool(job->bytes);
      });
}

void StdinSource::OnReadInPool(const std::string& bytes) {
  pool_read_.reset();
  kept_ += bytes;
  if (on_read_) Deliver(std::exchange(kept_, {}));
}

void StdinSource::Deliver(std::string bytes) { std::exchange(on_read_, {})(std::move(bytes)); }

}  // namespace rankrun::agent

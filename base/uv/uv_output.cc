#include "base/uv/uv_output.h"

#include <uv.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/uv/uv_loop.h"

namespace rankrun {
namespace {

constexpr std::chrono::milliseconds kRetryPause{10};

}  // namespace

struct Output::Request {
  uv_fs_t fs{};
  Output* owner;  // null once the Output is gone
  std::string bytes;
  size_t written = 0;
};

Output::Output(Loop& loop, int fd, std::function<void()> on_progress)
    : loop_(loop),
      fd_(fd),
      on_progress_(std::move(on_progress)),
      retry_(loop, [this] { StartWrite(); }) {}

Output::~Output() {
  if (in_flight_ == nullptr) return;
  if (waits_for_retry_) {
    delete in_flight_;
  } else {
    in_flight_->owner = nullptr;
  }
}

void Output::Write(std::string_view bytes) {
  loop_.AssertOnLoop();
  if (broken_) {
    dropped_bytes_ += bytes.size();
    return;
  }
  waiting_ += bytes;
  if (in_flight_ == nullptr && !waiting_.empty()) {
    in_flight_ = new Request;
    in_flight_->owner = this;
    in_flight_->bytes = std::exchange(waiting_, {});
    StartWrite();
  }
}

size_t Output::queued_bytes() const {
  size_t in_flight = in_flight_ == nullptr ? 0 : in_flight_->bytes.size() - in_flight_->written;
  return waiting_.size() + in_flight;
}

void Output::StartWrite() {
  waits_for_retry_ = false;
  Request* request = in_flight_;
  uv_buf_t rest = uv_buf_init(request->bytes.data() + request->written,
                              static_cast<unsigned>(request->bytes.size() - request->written));
  request->fs.data = request;
  int status = uv_fs_write(loop_.raw(), &request->fs, fd_, &rest, 1, -1, [](uv_fs_t* fs) {
    auto* done = static_cast<Request*>(fs->data);
    ssize_t result = fs->result;
    uv_fs_req_cleanup(fs);
    if (done->owner == nullptr) {
      delete done;
    } else {
      done->owner->OnWritten(result);
    }
  });
  RANKRUN_CHECK(status == 0, "cannot queue a write");
}

size_t Output::TakeLoss() {
  if (failure_ != 0) return 0;
  return dropped_bytes_ - std::exchange(reported_bytes_, dropped_bytes_);
}

void Output::OnFailure(int errno_value) {
  failure_ = errno_value;
  broken_ = errno_value == EPIPE || errno_value == EBADF || errno_value == EIO;
  dropped_bytes_ += queued_bytes();
  waiting_.clear();
  in_flight_->written = in_flight_->bytes.size();
}

void Output::OnWritten(ssize_t result) {
  if (result == -EAGAIN) {
    waits_for_retry_ = true;
    retry_.Start(kRetryPause);
    return;
  }
  if (result >= 0) {
    failure_ = 0;
    in_flight_->written += static_cast<size_t>(result);
  } else if (result != -EINTR) {
    OnFailure(static_cast<int>(-result));
  }
  if (in_flight_->written == in_flight_->bytes.size()) {
    in_flight_->bytes = std::exchange(waiting_, {});
    in_flight_->written = 0;
  }
  if (in_flight_->bytes.empty()) {
    delete std::exchange(in_flight_, nullptr);
  } else {
    StartWrite();
  }
  // Called last, and through a copy, because it may destroy this object.
  if (auto on_progress = on_progress_) on_progress();
}

}  // namespace rankrun

#include "agent/worker/line_fifo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/uv/uv_loop.h"

namespace rankrun::agent {

Result<std::unique_ptr<LineFifo>> LineFifo::Create(Loop& loop, const std::string& path,
                                                   std::function<void(std::string_view)> on_line) {
  struct stat there;
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISFIFO(there.st_mode)) {
      return Error{ErrorCode::kInvalid,
                   path + " is there and is no named pipe: remove it or name another path"};
    }
    unlink(path.c_str());
  }
  std::string what = "create the named pipe " + path;
  if (mkfifo(path.c_str(), 0600) != 0) return SystemError(what, errno);
  Fd fd(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return SystemError(what, errno);
  bool is_ours =
      fstat(fd.get(), &there) == 0 && S_ISFIFO(there.st_mode) && there.st_uid == geteuid();
  if (!is_ours) return Error{ErrorCode::kInvalid, what + ": another file is in its place"};
  return Watch(
      loop, std::unique_ptr<LineFifo>(new LineFifo(path, std::move(fd), std::move(on_line))), what);
}

Result<std::unique_ptr<LineFifo>> LineFifo::CreateUnnamed(
    Loop& loop, std::function<void(std::string_view)> on_line) {
  int ends[2];
  const std::string what = "create a pipe";
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return SystemError(what, errno);
  Fd read_end(ends[0]);
  std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends[1]);
  std::unique_ptr<LineFifo> fifo(
      new LineFifo(std::move(path), std::move(read_end), std::move(on_line)));
  fifo->write_end_.Reset(ends[1]);
  return Watch(loop, std::move(fifo), what);
}

Result<std::unique_ptr<LineFifo>> LineFifo::Watch(Loop& loop, std::unique_ptr<LineFifo> fifo,
                                                  const std::string& what) {
  auto poll = Poll::Open(loop, fifo->fd_.get(), [raw = fifo.get()] { raw->Read(); });
  if (!poll) return std::move(poll).error().In(what);
  fifo->poll_ = std::move(*poll);
  fifo->poll_->Start();
  return fifo;
}

LineFifo::LineFifo(std::string path, Fd fd, std::function<void(std::string_view)> on_line)
    : path_(std::move(path)), fd_(std::move(fd)), on_line_(std::move(on_line)) {}

LineFifo::~LineFifo() {
  if (!write_end_) unlink(path_.c_str());
}

// Reads one piece per turn of the loop, so that a worker that writes without
// end does not block the loop.
void LineFifo::Read() {
  std::array<char, 64 * 1024> buffer;
  ssize_t count = read(fd_.get(), buffer.data(), buffer.size());
  if (count <= 0) return;
  unread_.append(buffer.data(), static_cast<size_t>(count));
  TakeLines();
}

void LineFifo::TakeLines() {
  size_t begin = 0;
  for (size_t end; (end = unread_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    bool is_whole = !std::exchange(dropping_, false) && end - begin <= kMaxLine;
    if (is_whole) on_line_(std::string_view(unread_).substr(begin, end - begin));
  }
  unread_.erase(0, begin);
  if (unread_.size() <= kMaxLine) return;
  if (!std::exchange(warned_, true))
    LogWarn("ignored a line in " + path_ + " of more than 4096 bytes; further ones are not shown");
  dropping_ = true;
  unread_.clear();
}

}  // namespace rankrun::agent

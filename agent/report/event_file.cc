#include "agent/report/event_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "base/own_file.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxBacklogBytes = 1024 * 1024;
constexpr char kBreak = '\n';
constexpr int kWriteTimeoutMillis = 1000;  // until a full pipe has room

// Opens a named pipe without a reader for reading, too, because opening it for
// writing alone fails. The lines then wait in the pipe.
Result<Fd> OpenForAppending(const std::string& path) {
  constexpr int kFlags = O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY;
  auto fd = OpenOwnFile(path, O_WRONLY | kFlags);
  struct stat status;
  const bool is_pipe = !fd && stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  return is_pipe ? OpenOwnFile(path, O_RDWR | kFlags) : std::move(fd);
}

// Returns the N of /dev/fd/N and of its other names.
std::optional<int> NumberOfDescriptor(const std::filesystem::path& path) {
  std::error_code none;
  auto folder = std::filesystem::canonical(path.parent_path(), none);
  if (none || folder != "/proc/" + std::to_string(getpid()) + "/fd") return std::nullopt;
  return std::atoi(path.filename().c_str());
}

}  // namespace

struct EventFile::Target {
  Fd fd;
  bool has_name = false;  // a file that may be removed
  bool cut = false;       // a part of the next line has been written
  bool torn = false;      // ends in a part of a line whose rest was dropped
};

// Lines that a thread of the pool is writing.
struct EventFile::Batch {
  std::shared_ptr<Target> target;
  std::deque<std::string> lines;  // not written yet
  int errno_value = 0;            // why they could not be written
  bool removed = false;

  void Write() {
    while (!lines.empty() && errno_value == 0) WriteFirst();
    struct stat status;
    removed = target->has_name && fstat(target->fd.get(), &status) == 0 && status.st_nlink == 0;
  }

  void WriteFirst() {
    if (std::exchange(target->torn, false)) lines.front().insert(lines.front().begin(), kBreak);
    ssize_t count = write(target->fd.get(), lines.front().data(), lines.front().size());
    if (count < 0) {
      bool full = errno == EAGAIN;
      if (errno != EINTR && !(full && WaitUntilWritable())) errno_value = full ? EAGAIN : errno;
      return;
    }
    lines.front().erase(0, static_cast<size_t>(count));
    target->cut = !lines.front().empty();
    if (!target->cut) lines.pop_front();
  }

  void Drop() {
    target->torn = std::exchange(target->cut, false) || lines.front().starts_with(kBreak);
    lines.clear();
  }

  bool WaitUntilWritable() const {
    pollfd wait{target->fd.get(), POLLOUT, 0};
    return poll(&wait, 1, kWriteTimeoutMillis) > 0;
  }
};

EventFile::EventFile(Loop& loop, std::string path, Callbacks callbacks)
    : loop_(loop),
      path_(std::move(path)),
      callbacks_(std::move(callbacks)),
      target_(std::make_shared<Target>()),
      self_(std::make_shared<EventFile*>(this)) {}

EventFile::~EventFile() { *self_ = nullptr; }

Result<Fd> EventFile::OpenDescriptor(const std::string& path) {
  if (path == "-") {
    return Error{ErrorCode::kInvalid,
                 "--events -: want a file; --event-log-handler console writes events to "
                 "standard error"};
  }
  if (auto number = NumberOfDescriptor(path); number && IsOurs(*number)) {
    return Error{ErrorCode::kInvalid,
                 "--events " + path + ": want a descriptor that rankrun inherits"};
  }
  auto fd = OpenForAppending(path);
  if (!fd) return Error{ErrorCode::kInvalid, "--events " + fd.error().message};
  return fd;
}

Result<std::unique_ptr<EventFile>> EventFile::Open(Loop& loop, const std::string& path,
                                                   Callbacks callbacks) {
  auto fd = OpenDescriptor(path);
  if (!fd) return std::move(fd).error();
  std::unique_ptr<EventFile> file(new EventFile(loop, path, std::move(callbacks)));
  struct stat status;
  bool known = fstat(fd->get(), &status) == 0;
  file->target_->has_name = known && S_ISREG(status.st_mode) && status.st_nlink > 0;
  file->target_->fd = std::move(*fd);
  return file;
}

void EventFile::Write(std::string line) {
  if (waiting_bytes_ + line.size() > kMaxBacklogBytes) {
    dropped_ += 1;
    ReportFailure("no process reads it, or its disk is slow; lines are lost");
    return;
  }
  waiting_bytes_ += line.size();
  waiting_.push_back(std::move(line));
  if (!writing_) WriteWaiting();
}

void EventFile::WriteWaiting() {
  writing_ = true;
  auto batch = std::make_shared<Batch>();  // shared by the pool's job and its completion
  batch->target = target_;
  batch->lines = std::exchange(waiting_, {});
  RunInPool(
      loop_, [batch] { batch->Write(); },
      [batch, self = self_] {
        if (*self != nullptr) (*self)->OnWritten(*batch);
      });
}

void EventFile::OnWritten(Batch& batch) {
  writing_ = false;
  works_ = batch.errno_value == 0;
  if (!works_ && batch.errno_value != EAGAIN) {  // a full pipe may get room again
    dropped_ += batch.lines.size();
    batch.Drop();
    ReportFailure(SystemError("lines are lost", batch.errno_value).message);
  }
  if (batch.removed) ReportFailure("the file was removed together with its lines");
  std::ranges::move(waiting_, std::back_inserter(batch.lines));
  waiting_ = std::move(batch.lines);
  waiting_bytes_ = 0;
  for (const std::string& line : waiting_) waiting_bytes_ += line.size();
  if (!waiting_.empty()) WriteWaiting();
  callbacks_.on_progress();
}

size_t EventFile::TakeLoss() { return works_ ? std::exchange(dropped_, 0) : 0; }

void EventFile::ReportFailure(const std::string& reason) {
  if (std::exchange(last_failure_, reason) == reason) return;
  callbacks_.on_failure("--events " + path_ + ": " + reason);
}

}  // namespace rankrun::agent

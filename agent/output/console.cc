#include "agent/output/console.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "agent/output/line_prefix.h"
#include "base/result.h"

namespace rankrun::agent {
namespace {

bool HaveSameTarget(int fd, int other) {
  struct stat one, two;
  if (fstat(fd, &one) != 0 || fstat(other, &two) != 0) return false;
  return one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

// Returns whether `text` must begin a new line because it would extend another
// writer's open line. Progress bars may replace one another.
bool NeedsNewLine(char last, std::string_view text) {
  if (last == '\n') return false;
  return last != '\r' || text.back() != '\r';
}

bool IsGone(int failure) { return failure == EPIPE || failure == EIO || failure == EBADF; }

}  // namespace

Console::Console(Loop& loop, int stdout_fd, int stderr_fd, std::function<void()> on_progress)
    : on_progress_(std::move(on_progress)), share_target_(HaveSameTarget(stdout_fd, stderr_fd)) {
  sides_[kStdout].output =
      std::make_unique<Output>(loop, stdout_fd, [this] { OnProgress(kStdout); });
  sides_[kStderr].output =
      std::make_unique<Output>(loop, stderr_fd, [this] { OnProgress(kStderr); });
  sides_[kStdout].is_terminal = isatty(stdout_fd) != 0;
  sides_[kStderr].is_terminal = isatty(stderr_fd) != 0;
}

void Console::Write(Channel channel, const Text& text) {
  Side& side = SideOf(channel);
  std::string_view bytes = text.bytes;
  bool same_writer = side.writer == text.writer;
  bool ends_line = text.after_return && bytes.starts_with('\n');
  // Another writer has already ended that line.
  if (ends_line && !same_writer) bytes.remove_prefix(1);
  if (bytes.empty()) return;
  bool ends_old_line = !same_writer && NeedsNewLine(side.last, bytes);
  bool at_line_start = !same_writer || side.last == '\n' || side.last == '\r';
  if (ends_line && same_writer) at_line_start = false;
  if (text.prefix.empty() && !ends_old_line) {
    side.output->Write(bytes);
  } else {
    std::string out = ends_old_line ? "\n" : "";
    AppendPrefixed(bytes, text.prefix, at_line_start, out);
    side.output->Write(out);
  }
  side.writer = text.writer;
  side.last = bytes.back();
}

void Console::NoteTypedLine() {
  for (Side& side : sides_) {
    if (side.is_terminal) side.last = '\n';
  }
}

bool Console::full(Channel channel) const {
  return SideOf(channel).output->queued_bytes() > kMaxQueuedBytes;
}

size_t Console::queued_bytes() const {
  return sides_[kStdout].output->queued_bytes() + sides_[kStderr].output->queued_bytes();
}

// Returns the message of a new failure, once; empty if there is none or nobody
// would see the message.
std::string Console::NewFailure(Channel channel) {
  Side& side = sides_[channel];
  std::string name = channel == kStdout ? "standard output" : "standard error";
  if (size_t lost = side.output->TakeLoss(); lost > 0) {
    return std::to_string(lost) + " bytes for " + name + " could not be written";
  }
  int failure = side.output->failure();
  bool is_seen = channel == kStdout && !share_target_;
  if (failure == 0 || !is_seen || std::exchange(side.reported, true)) return "";
  std::string until = IsGone(failure) ? "lost from here on" : "lost until writing works again";
  return SystemError("write to " + name, failure).message + "; worker output is " + until;
}

void Console::OnProgress(Channel channel) {
  std::string what = NewFailure(channel);
  if (!what.empty()) Say("rankrun: " + what + "\n");
  on_progress_();
}

}  // namespace rankrun::agent

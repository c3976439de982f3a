#include "cli/output.h"

#include "base/printable.h"
#include "base/write_all.h"

namespace rankrun::cli {

int Fail(std::string_view message, int exit_code) {
  WriteAll(STDERR_FILENO, "rankctl: " + OneLine(message) + "\n");
  return exit_code;
}

SafeStream::~SafeStream() {
  if (!rest_.empty()) WriteAll(fd_, Lines(rest_));
}

Result<void> SafeStream::Write(std::string_view bytes) {
  if (!is_terminal_) return TryWriteAll(fd_, bytes);
  rest_ += bytes;
  const size_t whole = rest_.size() - IncompleteEnd(rest_);
  const std::string text = Lines(std::string_view(rest_).substr(0, whole));
  rest_.erase(0, whole);
  return TryWriteAll(fd_, text);
}

bool Printer::Write(std::string_view bytes) {
  constexpr size_t kEnough = size_t{64} << 10;
  buffer_ += bytes;
  return buffer_.size() < kEnough ? bool(state_) : Flush();
}

bool Printer::Flush() {
  if (state_) state_ = out_.Write(buffer_);
  buffer_.clear();
  return bool(state_);
}

int Printer::End(int exit_code) {
  if (Flush()) return exit_code;
  return Fail("standard output: " + state_.error().message, kExitNo);
}

int Print(std::string_view text) {
  auto written = SafeStream(STDOUT_FILENO).Write(text);
  if (!written) return Fail("standard output: " + written.error().message, kExitNo);
  return kExitDone;
}

int Redraw(std::string_view text) {
  constexpr std::string_view kHome = "\x1b[H\x1b[2J";
  auto written = TryWriteAll(STDOUT_FILENO, std::string(kHome) + Lines(text));
  if (!written) return Fail("standard output: " + written.error().message, kExitNo);
  return kExitDone;
}

}  // namespace rankrun::cli

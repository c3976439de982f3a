#include "cli/output.h"

#include <unistd.h>

#include "base/printable.h"
#include "base/write_all.h"

namespace rankrun::cli {

int Fail(std::string_view message, int exit_code) {
  WriteAll(STDERR_FILENO, "rankctl: " + OneLine(message) + "\n");
  return exit_code;
}

bool Printer::Write(std::string_view bytes) {
  constexpr size_t kEnough = size_t{64} << 10;
  buffer_ += bytes;
  return buffer_.size() < kEnough ? bool(state_) : Flush();
}

bool Printer::Flush() {
  if (state_) state_ = TryWriteAll(STDOUT_FILENO, buffer_);
  buffer_.clear();
  return bool(state_);
}

int Printer::End(int exit_code) {
  if (Flush()) return exit_code;
  return Fail("standard output: " + state_.error().message, kExitNo);
}

int Print(std::string_view text) {
  auto written = TryWriteAll(STDOUT_FILENO, text);
  if (!written) return Fail("standard output: " + written.error().message, kExitNo);
  return kExitDone;
}

}  // namespace rankrun::cli

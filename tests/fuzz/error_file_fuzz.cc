// The error file of a worker, which any program may have written.

#include <sys/mman.h>

#include "agent/report/error_file.h"
#include "base/fd.h"
#include "base/write_all.h"
#include "tests/fuzz/check_input.h"

namespace rankrun::test {

std::string CheckInput(std::string_view input) {
  Fd file(memfd_create("error-file", MFD_CLOEXEC));
  if (!file || !TryWriteAll(file.get(), input)) return "the file cannot be written";
  auto read = agent::ReadErrorFile("/proc/self/fd/" + std::to_string(file.get()));
  auto passed_on = agent::WithErrorCode(std::string(input), 1);
  if (read && !passed_on) return "a file that can be read is not passed on";
  if (passed_on && agent::WithErrorCode(*passed_on, 1) != passed_on) return "the copy changes";
  return "";
}

}  // namespace rankrun::test

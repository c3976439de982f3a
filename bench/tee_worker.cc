// A worker that prints: `tee_worker <MiB>` writes that amount to standard
// output in lines of 100 bytes, 64 KiB at a time, like a program with buffered
// output.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: tee_worker MiB\n", stderr);
    return 2;
  }
  constexpr size_t kLine = 100;
  constexpr size_t kBlock = 64 * 1024;
  std::string lines;
  while (lines.size() < kBlock + kLine) lines += std::string(kLine - 1, 'x') + "\n";
  size_t total = std::strtoull(argv[1], nullptr, 10) << 20;
  for (size_t at = 0; at < total;) {
    // Continues where the last line was cut.
    ssize_t count = write(STDOUT_FILENO, lines.data() + at % kLine, std::min(kBlock, total - at));
    if (count < 0) return 1;
    at += static_cast<size_t>(count);
  }
  return 0;
}

#include "base/format.h"

#include <cstdio>
#include <cstring>

namespace rankrun {

std::string FormatSeconds(Duration duration) {
  double seconds = std::chrono::duration<double>(duration).count();
  char text[64];
  std::snprintf(text, sizeof text, seconds < 1.0 ? "%.3f s" : "%.1f s", seconds);
  return text;
}

std::string SignalName(int signal_number) {
  const char* name = sigabbrev_np(signal_number);
  if (name == nullptr) return "signal " + std::to_string(signal_number);
  return std::string("SIG") + name;
}

}  // namespace rankrun

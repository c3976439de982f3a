#pragma once

#include <string>

namespace rankrun::launcher {

// A setting that has no effect, for --explain.
struct Note {
  std::string what;  // "--monitor-interval 0.5"
  std::string why;

  bool operator==(const Note&) const = default;
};

}  // namespace rankrun::launcher

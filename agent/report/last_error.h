#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rankrun::agent {

// Error with which a program ended, as its standard error shows it.
struct LastError {
  // An exception that nothing caught, of Python, C++ or Java, a panic or a fatal line of a log: its
  // type and text. If several form a chain, the first, from which the others followed. Otherwise
  // the last lines.
  std::string text = {};
  bool is_exception = false;
  int lines_after = 0;  // that are not empty; large: the program has caught the exception
};

// Pure.
LastError FindLastError(std::string_view standard_error);

// Returns the last lines as an error, whatever exceptions come before them. Pure.
LastError LastLinesError(std::string_view standard_error);

// Returns the line with which a sanitizer begins its report, or nothing. A long legend may
// follow it. Pure.
std::string SanitizerError(std::string_view standard_error);

}  // namespace rankrun::agent

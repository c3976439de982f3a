#pragma once

#include <string>
#include <string_view>
#include <vector>

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

// Returns whether the error is an exception with which the program ended. Pure.
bool EndedWithException(const LastError& error);

// Returns the last lines as an error, whatever exceptions come before them. Pure.
LastError LastLinesError(std::string_view standard_error);

// Lines of a stream for a reader.
struct ShownLines {
  std::vector<std::string> lines = {};
  size_t left_out = 0;  // between them and the end of the stream
};

// Returns at most `count` of the last lines. After an exception, leaves out lines that say nothing
// about it, and further ones until the exception is among the last `count`. Pure.
ShownLines LastLinesWithException(std::string_view output, size_t count);

// Returns the line with which a sanitizer begins its report, or nothing. A long legend may
// follow it. Pure.
std::string SanitizerError(std::string_view standard_error);

}  // namespace rankrun::agent

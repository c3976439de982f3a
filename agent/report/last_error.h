#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rankrun::agent {

// Error with which a program ended, as its standard error shows it.
struct LastError {
  // An exception that nothing caught, of Python or C++: its type and text. If several
  // form a chain, the first, from which the others followed. Otherwise the last lines.
  std::string text = {};
  bool is_exception = false;
  int lines_after = 0;  // that are not empty; large: the program has caught the exception
};

// Pure.
LastError FindLastError(std::string_view standard_error);

// Returns the last lines as an error, whatever exceptions come before them. Pure.
LastError LastLinesError(std::string_view standard_error);

// Returns whether an error says that the connection to another process was lost, in a text
// of PyTorch, Gloo, NCCL, Python, the kernel or librankrun. Pure.
bool BlamesLostPeer(const LastError& error);

// Returns whether an error says that a wait for other workers took too long, in a text of
// PyTorch, Gloo, NCCL, librankrun, or Python's own sockets. Pure.
bool TimedOut(const LastError& error);

// Returns whether the last line is the text of the system for a lost connection, with a prefix,
// as perror writes it: "recv: Connection reset by peer". Pure.
bool EndsWithLostPeer(const LastError& error);

// Returns the line with which a sanitizer begins its report, or nothing. A long legend may
// follow it. Pure.
std::string SanitizerError(std::string_view standard_error);

}  // namespace rankrun::agent

#pragma once

#include <string>

namespace rankrun {

// How a file is executed, according to its first bytes.
struct Executable {
  enum class Kind { kUnreadable, kEmpty, kScript, kText, kElf, kWindows, kMacOs, kOther };
  Kind kind = Kind::kUnreadable;
  std::string interpreter;  // of kScript and kElf; empty: it names none
  std::string machine;      // of kElf, in the names of `uname -m`: "x86_64"
};

// Reads the head of a regular file; other files are kUnreadable.
Executable ReadExecutable(const std::string& path);

// Returns the machine that this program was built for.
std::string OwnMachine();

}  // namespace rankrun

#pragma once

#include <string>

namespace rankrun {

// What the first bytes of a file say of how it is executed.
struct Executable {
  enum class Kind { kUnreadable, kEmpty, kScript, kText, kElf, kWindows, kMacOs, kOther };
  Kind kind = Kind::kUnreadable;
  std::string interpreter;  // of kScript and kElf; empty: it names none
  std::string machine;      // of kElf, as `uname -m` says it: "x86_64"
};

// Reads a regular file's head; anything else is kUnreadable.
Executable ReadExecutable(const std::string& path);

// The machine that this program was built for.
std::string OwnMachine();

}  // namespace rankrun

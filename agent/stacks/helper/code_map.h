#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/stacks/helper/snapshot.h"
#include "agent/stacks/process_stacks.h"
#include "base/result.h"

struct Dwfl;
struct Dwfl_Frame;
struct Dwfl_Module;

namespace rankrun::agent {

// Programs and libraries that a process has mapped: unwinds stacks and names functions, by
// libdw. Reads an ELF file when an address in it is asked for. Never asks a server for debug
// information.
class CodeMap {
 public:
  // Errors: kSystem; the message is empty if there is no permission.
  static Result<std::unique_ptr<CodeMap>> Open(pid_t pid);
  CodeMap(const CodeMap&) = delete;
  CodeMap& operator=(const CodeMap&) = delete;
  ~CodeMap();

  // The interpreter of a CPython process.
  struct Python {
    std::string module;  // path
    uint64_t runtime;    // address of _PyRuntime
    int minor;           // of 3.x, by the name of the module
  };
  std::optional<Python> FindPython() const;

  // Returns the addresses of the functions of each thread, innermost first. Call this once.
  std::vector<std::vector<uint64_t>> Unwind(const Snapshot& snapshot);

  // Returns function and module at an address of Unwind. Adds the line if there is debug
  // information.
  StackFrame NameOf(uint64_t address);
  void AddLine(uint64_t address, StackFrame& frame);

 private:
  struct Memory;  // of the threads that are unwound
  struct Callbacks;

  CodeMap(pid_t pid, ::Dwfl* dwfl);

  const pid_t pid_;
  ::Dwfl* const dwfl_;
  std::unique_ptr<Memory> memory_;
  std::map<uint64_t, StackFrame> names_;
};

}  // namespace rankrun::agent

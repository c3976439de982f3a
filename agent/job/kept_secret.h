#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace rankrun::agent {

// A secret in a memory file that guardian and agents share by fork, so that the next agent finds
// it, too. The guardian keeps it without reading it: then no core file of the guardian has it.
// Thread: one at a time, in one process at a time.
class KeptSecret {
 public:
  // Errors: kSystem or kExhausted.
  static Result<KeptSecret> Create();

  // Keeps a secret, once. A process that is killed meanwhile leaves none.
  // Errors: those of SystemError.
  Result<void> Keep(std::string_view secret) const;
  // Returns nothing before Keep.
  std::optional<std::string> Read() const;

 private:
  explicit KeptSecret(Fd memory) : memory_(std::move(memory)) {}

  Fd memory_;
};

// Moves the value of a variable from the environment of this process into `secret`, and erases it
// from the memory that other processes see as /proc/PID/environ. Leaves an empty variable. Call it
// before any other thread runs.
// Errors: those of KeptSecret::Keep.
Result<void> TakeVariable(const char* name, const KeptSecret& secret);

}  // namespace rankrun::agent

#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/process/spawn.h"
#include "base/result.h"

// Texts between this process and its preloader (preload.py), in JSON.
namespace rankrun::agent {

inline constexpr std::string_view kCheckRequest = R"({"check": true})";
inline constexpr std::string_view kForkRequest = R"({"fork": true})";

// Encodes what a worker needs besides its descriptors. `options`: see CountPythonOptions. Pure.
std::string EncodeForkOrder(const SpawnSpec& spec, size_t options);

// The first text of a preloader.
struct PreloadResult {
  std::vector<std::string> notes;  // one for each module that cannot be imported: "name: why"
  std::string unsafe;              // "torch runs 1 thread (x)": no fork is safe; empty: it is

  // Errors: kMismatch.
  static Result<PreloadResult> Parse(const std::string& text);
};

// Decodes the answer to a check: the path of a file that has changed, or nothing.
// Errors: kMismatch.
Result<std::string> ParseChangedFile(const std::string& text);

// Decodes the answer to an order: the pid of the worker.
// Errors: those of SpawnProcess; kMismatch.
Result<pid_t> ParseForkedPid(const std::string& text, const SpawnSpec& spec);

}  // namespace rankrun::agent

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

// The mark in a temporary folder of a job. It shows later runs of rankrun that rankrun made the
// folder, and whether the job still uses it. It is the text of a link, which one call makes.
namespace rankrun::agent {

// Name of the link.
constexpr char kFolderMark[] = ".rankrun-job";

struct FolderMark {
  // True once the job has left the folder to its user. Then only the link's time counts.
  bool has_ended = false;
  uint64_t pid_namespace = 0;          // where the pids mean something
  std::chrono::nanoseconds made = {};  // since the boot; a process that is younger has a reused pid
  pid_t guardian = 0;
  pid_t agent = 0;
  std::string host = {};
  bool operator==(const FolderMark&) const = default;
};

// Encode and decode a mark. Decoding returns nothing for other text. Pure.
std::string EncodeMark(const FolderMark& mark);
std::optional<FolderMark> DecodeMark(const std::string& text);

// Returns the mark of a job of which this process is the agent.
FolderMark MarkOfThisJob();

// Returns whether no process uses the folder any more. False if that cannot be known here,
// because the pids are of another host or PID namespace.
bool UsersAreGone(const FolderMark& mark);

// Marks the folder at `path`, below `at` (or AT_FDCWD), in the place of another mark.
// Errors: kSystem.
Result<void> WriteMark(int at, const std::string& path, const FolderMark& mark);

}  // namespace rankrun::agent

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

// The mark in a temporary folder of a job. It shows later runs of rankrun that rankrun made the
// folder, and whether the job still uses it. It is the text of a link, which one call makes; it is
// shorter than 60 bytes, because ext4 then stores it without a block of its own.
namespace rankrun::agent {

// Name of the link.
constexpr char kFolderMark[] = ".rankrun-job";

struct FolderMark {
  // When the job left the folder to its user. Then nothing else counts.
  std::optional<std::chrono::sys_seconds> ended = {};
  uint64_t pid_space = 0;          // host, start of the host and PID namespace, as a short hash
  std::chrono::seconds made = {};  // since the boot; a process that is younger has a reused pid
  pid_t guardian = 0;
  pid_t agent = 0;
  bool operator==(const FolderMark&) const = default;
};

// Encode and decode a mark. Decoding returns nothing for other text. Pure.
std::string EncodeMark(const FolderMark& mark);
std::optional<FolderMark> DecodeMark(const std::string& text);

// Returns the mark of a job of which this process is the agent.
FolderMark MarkOfThisJob();

// Returns whether no process uses the folder any more. False if that cannot be known here,
// because the pids are of another host or PID namespace, or of an earlier start of this host.
bool UsersAreGone(const FolderMark& mark);

// Marks the folder at `path`, below `at` (or AT_FDCWD), in the place of another mark.
// Errors: kSystem.
Result<void> WriteMark(int at, const std::string& path, const FolderMark& mark);

}  // namespace rankrun::agent

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/clock.h"

// Temporary folders of jobs that have ended: "rankrun-XXXXXX" in TMPDIR, with a mark
// (folder_mark.h). Other users may write into TMPDIR, too: these functions touch only folders of
// this user that no one else may open, hold them open, and follow no link.
namespace rankrun::agent {

// Removes the empty folders and the pipes in the folder of a job that ends, and the folder itself
// if no file is left. Otherwise marks it as one that its user may read, so that it is removed
// later. Returns whether it stays. Blocks.
bool LeaveFolder(const std::string& path);

// Removes the marks of a folder that the user has named, and of those above it, so that no run
// removes it. Follows links.
void ClaimFolder(const std::string& path);

// Removes those folders in `parent` that are too old or too many (agent/job/kept_entries.h), and
// those without files that killed jobs have left. Stops at the deadline. Blocks. Returns the other
// folders of killed jobs, each only once: they count as left to the user from now on.
std::vector<std::string> RemoveOldFolders(const std::string& parent,
                                          std::chrono::system_clock::time_point now,
                                          TimePoint deadline);

}  // namespace rankrun::agent

#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace rankrun::agent {

// Reads a file that a worker has written. Returns nothing if there is none, if it is larger than
// `max_bytes`, if it was last written before `not_before`, or if it is not a regular file,
// because a read of anything else may block.
std::optional<std::string> ReadRegularFile(const std::string& path, size_t max_bytes,
                                           std::chrono::system_clock::time_point not_before = {});

}  // namespace rankrun::agent

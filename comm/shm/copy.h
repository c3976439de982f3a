#pragma once

#include <cstddef>

// Copies for cases in which memcpy is slow. The ranges must not overlap.
namespace rankrun::comm::shm {

// Copies from memory that is in no cache and in no translation buffer.
void CopyFromMemory(std::byte* to, const std::byte* from, size_t bytes);

// Copies with streaming stores past the caches, so that other ranks read from
// memory instead of this processor's cache. Stores after the call become
// visible after the copy. On processors without such stores it is memcpy.
void CopyToMemory(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace rankrun::comm::shm

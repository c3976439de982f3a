#pragma once

#include <cstddef>

// Ways to copy that memcpy has not. The places do not overlap.
namespace rankrun::comm {

// Out of memory that no cache has, and whose pages have not been used lately.
void CopyFromMemory(std::byte* to, const std::byte* from, std::size_t bytes);

// Past the caches, so that others read it out of memory instead of out of this
// processor's cache; where processors cannot, as memcpy does. What is published
// afterwards is seen after it.
void CopyToMemory(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace rankrun::comm

#pragma once

#include <cstddef>
#include <span>

namespace rankrun {

// Fills `bytes` with random numbers for secrets. Uses /dev/urandom where the kernel has no
// getrandom (before Linux 3.17) or a sandbox forbids it. Returns false, with errno, if there is
// neither. Thread: any.
bool FillRandom(std::span<std::byte> bytes);

// The same for the bytes of an object without pointers.
template <typename T>
bool FillRandom(T& object) {
  return FillRandom(std::as_writable_bytes(std::span(&object, 1)));
}

}  // namespace rankrun

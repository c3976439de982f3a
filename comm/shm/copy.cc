#include "comm/shm/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rankrun::comm::shm {
namespace {

constexpr size_t kPage = 4096;

// Prefetches two pages ahead. Translating the address of a new page takes as
// long as copying hundreds of bytes, and hardware prefetchers stop at the end
// of a page. The address need not be valid, because a prefetch is only a hint.
void FetchSoon(const std::byte* from) {
  __builtin_prefetch(
      reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(from) + 2 * kPage));
}

}  // namespace

void CopyFromMemory(std::byte* to, const std::byte* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kPage) {
    FetchSoon(from + at);
    std::memcpy(to + at, from + at, std::min(kPage, bytes - at));
  }
}

#if defined(__x86_64__)

void CopyToMemory(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t kLine = 64;
  if (reinterpret_cast<std::uintptr_t>(to) % kLine != 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  size_t lines = bytes / kLine * kLine;
  for (size_t at = 0; at < lines; at += kLine) {
    if (at % kPage == 0) FetchSoon(from + at);
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i line[] = {_mm_loadu_si128(source), _mm_loadu_si128(source + 1),
                            _mm_loadu_si128(source + 2), _mm_loadu_si128(source + 3)};
    for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, line[i]);
  }
  std::memcpy(to + lines, from + lines, bytes - lines);
  _mm_sfence();  // streaming stores are not ordered otherwise
}

#else

void CopyToMemory(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace rankrun::comm::shm

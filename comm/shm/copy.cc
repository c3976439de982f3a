#include "comm/shm/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rankrun::comm {
namespace {

constexpr std::size_t kPage = 4096;

// To find out where a page is takes as long as to copy hundreds of bytes, and
// processors fetch nothing ahead that is in another page than what they read. A
// hint: there need not be anything.
void FetchSoon(const std::byte* from) {
  __builtin_prefetch(
      reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(from) + 2 * kPage));
}

}  // namespace

void CopyFromMemory(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kPage) {
    FetchSoon(from + at);
    std::memcpy(to + at, from + at, std::min(kPage, bytes - at));
  }
}

#if defined(__x86_64__)

void CopyToMemory(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  if (reinterpret_cast<std::uintptr_t>(to) % kLine != 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t lines = bytes / kLine * kLine;
  for (std::size_t at = 0; at < lines; at += kLine) {
    if (at % kPage == 0) FetchSoon(from + at);
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i line[] = {_mm_loadu_si128(source), _mm_loadu_si128(source + 1),
                            _mm_loadu_si128(source + 2), _mm_loadu_si128(source + 3)};
    for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, line[i]);
  }
  std::memcpy(to + lines, from + lines, bytes - lines);
  _mm_sfence();  // nothing else orders such stores
}

#else

void CopyToMemory(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace rankrun::comm

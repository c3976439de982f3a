#pragma once

#include <cstddef>

namespace rankrun::comm::stream {

// Messages up to this size are sent at once; the sender does not wait for the
// receiver, which keeps them in its memory until a receive matches. Longer ones
// are offered first.
inline constexpr size_t kMaxEagerBytes = size_t{64} << 10;

// Long messages move in pieces, so that other frames are not delayed much.
inline constexpr size_t kPieceBytes = size_t{1} << 20;

inline constexpr size_t kMaxFarewellBytes = 4096;

}  // namespace rankrun::comm::stream

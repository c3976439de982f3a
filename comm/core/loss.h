#pragma once

#include <chrono>

namespace rankrun::comm {

// Time after which the loss of a rank ends a call that waits for another one. The lost rank may
// have ended as soon as its part of the call was done; then the others still complete it.
inline constexpr std::chrono::milliseconds kUnawaitedLossPatience{300};

}  // namespace rankrun::comm

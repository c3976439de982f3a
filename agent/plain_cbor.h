#pragma once

#include <string_view>

namespace rankrun::agent {

// Whether `bytes` are one value of CBOR as we write it: every length given in
// front, no tags, at most 16 values within each other, nothing behind it. To be
// asked before a parser that calls itself for each level, or a stranger could
// end us with a small message. Pure.
bool IsPlainCbor(std::string_view bytes);

}  // namespace rankrun::agent

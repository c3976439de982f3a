#pragma once

#include <string_view>

namespace rankrun {

// Returns whether the CBOR in `bytes` nests at most `max_levels` deep. Check
// this before using a recursive parser, so that a small message cannot exhaust
// the stack. Arrays, maps, tags and strings of unknown length are levels.
// Counts up to the first error, where such a parser stops; other errors are
// left to the parser. Pure; allocates nothing.
// A handler of nlohmann's parser cannot count the levels, because the parser
// recurses into the parts of a string without an event.
bool CborNestsWithin(std::string_view bytes, int max_levels);

}  // namespace rankrun

#pragma once

#include <string>
#include <string_view>

namespace rankrun::store {

// The first bytes of `input` say the limits and how the others are cut, which
// are what a client sends.
constexpr size_t kWireInputHead = 8;

// Decodes them as they are cut, in one piece and byte by byte, and naively.
// Returns where that differs or breaks a promise of the decoder; empty: nowhere.
std::string CheckWireInput(std::string_view input);

}  // namespace rankrun::store

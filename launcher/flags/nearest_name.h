#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace rankrun::launcher {

// Returns the one of `names` that `typed` was probably meant to be: a name that
// begins with it, or else the name with the smallest edit distance, if that is
// small. Pure.
std::optional<std::string_view> NearestName(std::string_view typed,
                                            std::span<const std::string_view> names);

}  // namespace rankrun::launcher

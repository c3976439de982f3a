#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace rankrun::launcher {

// Which of `names` was probably meant by `typed`: one that begins with it, else
// the one that the fewest edits lead to, if they are few. Pure.
std::optional<std::string_view> NearestName(std::string_view typed,
                                            std::span<const std::string_view> names);

}  // namespace rankrun::launcher

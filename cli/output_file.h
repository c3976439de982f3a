#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace rankrun::cli {

// Writes a file, or to a pipe or device. A file is written beside its place and stays only if it
// is complete. A file that was there keeps its mode; a new one is for its user alone.
// Errors: kSystem; a file that was there is as before.
Result<void> WriteOutputFile(const std::string& path, std::string_view text);

}  // namespace rankrun::cli

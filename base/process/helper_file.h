#pragma once

#include <string>

#include "base/result.h"

namespace rankrun {

// Returns where a file is that rankrun brings for itself, such as "rankrun-stacks": in
// $RANKRUN_PLUGIN_DIR, beside this program or in its libexec folder. `mode`: X_OK for a program,
// R_OK for another file.
// Errors: kNotFound, with the places.
Result<std::string> FindHelperFile(const std::string& name, int mode);

}  // namespace rankrun

#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "comm/core/backend.h"

namespace rankrun::comm {

// Returns `text` in lower case: names of backends ignore case.
std::string BackendName(std::string text);

// Loads librankrun_<name>.so from the first of `folders` that contains it. If
// that file cannot be loaded, later folders are not tried, because their file
// may be another version. It stays loaded until the process ends, because
// backends have threads and thread-local data.
// Errors: kInvalid, no folder has it, so the name is wrong; kNotFound, it
// cannot be loaded (with the loader's message), or no folder has "gloo";
// kSystem, the plug-in has another version.
Result<const BackendPlugin*> LoadPlugin(const std::string& name,
                                        const std::vector<std::string>& folders);

// Returns the folders of plug-ins: $RANKRUN_PLUGIN_DIR if it is set, the folder
// of this library, and rankrun/ in it.
std::vector<std::string> PluginFolders();

}  // namespace rankrun::comm

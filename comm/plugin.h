#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "comm/backend.h"

namespace rankrun::comm {

// Names of backends are equal in lower and upper case: `text` in lower case.
std::string BackendName(std::string text);

// Loads librankrun_<name>.so from the first of `folders` that has it, be it one
// that cannot be loaded: another folder's may not be the one meant. It stays
// loaded until the process ends: backends have threads and thread-local data.
// Errors: kInvalid when there is none, as the name is wrong then; kNotFound when
// it cannot be loaded, with the loader's words, or when there is no "gloo";
// kSystem for a plug-in of another version.
Result<const BackendPlugin*> LoadPlugin(const std::string& name,
                                        const std::vector<std::string>& folders);

// Where plug-ins are looked for: the folder RANKRUN_PLUGIN_DIR if it is set,
// beside this library, in rankrun/ there.
std::vector<std::string> PluginFolders();

}  // namespace rankrun::comm

#pragma once

#include <string>

#include "base/process/spawn.h"
#include "base/result.h"

namespace rankrun {

// Explains why execve(`spec`) failed with the errno `failure`: "start <file>:
// <cause>". Examines the file and the interpreters that it names, because the
// kernel reports the same errno for a missing file and a missing interpreter.
// Blocks as long as the file system does.
// The code is that of SystemError: kNotFound for ENOENT.
Error ExplainExecError(const SpawnSpec& spec, int failure);

// Explains why there is no file `path`: "no such file", a missing parent
// folder, or a link to nothing. Blocks as the file system does.
std::string WhyNotThere(const std::string& path);

}  // namespace rankrun

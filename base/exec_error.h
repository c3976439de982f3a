#pragma once

#include <string>

#include "base/result.h"
#include "base/spawn.h"

namespace rankrun {

// Why execve(`spec`) failed with the errno `failure`, as "start <file>: <cause>":
// looks at the file and at the interpreters that it names, since the kernel's
// word is the same for a missing file and for a missing interpreter. Blocks as
// long as the file system does.
// The code is the one of SystemError: kNotFound for ENOENT.
Error ExplainExecError(const SpawnSpec& spec, int failure);

// Why there is no file `path`: "no such file", a folder on the way that is
// missing, or a link to nothing. Blocks as the file system does.
std::string WhyNotThere(const std::string& path);

}  // namespace rankrun

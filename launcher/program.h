#pragma once

#include <string>
#include <vector>

#include "agent/job_spec.h"
#include "base/result.h"
#include "launcher/environment.h"

namespace rankrun::launcher {

struct ProgramRequest {
  std::vector<std::string> words;  // the program and its arguments; not empty
  bool no_python = false;          // execute it itself, whatever its name
  bool module = false;             // it is a Python module
  bool always_python = false;      // under Python by the name given, unless `no_python`
};

// What to execute for `request`: a name with a "/" or of a file in the current
// folder is that file, else it is looked for in PATH. *.py and files without
// an exec bit run under Python (PYTHON_EXEC, else VIRTUAL_ENV's, else python3)
// with -u. With `always_python` the name is given to Python, which runs folders
// and archives with a __main__.py, too. Looks at files, changes none.
// Errors: kNotFound; kInvalid for a folder, or with `no_python` for a file
// that cannot be executed. The text says where it was looked for.
Result<agent::Program> ResolveProgram(const ProgramRequest& request,
                                      const Environment& environment);

}  // namespace rankrun::launcher

#pragma once

#include <string>
#include <vector>

#include "agent/job/job_spec.h"
#include "base/result.h"
#include "launcher/settings/environment.h"

namespace rankrun::launcher {

// A program as the user gave it, and how to execute it.
struct ProgramRequest {
  std::vector<std::string> program;  // with its arguments; not empty
  bool no_python = false;            // execute the file itself, whatever its name
  bool module = false;               // the program is a Python module
  bool always_python = false;        // give the name to Python, unless `no_python`
  std::string started_as = {};       // our own name as the user typed it; a path is absolute
};

// How to execute a program.
struct ResolvedProgram {
  agent::Program program;
  bool is_python = false;    // its file is a Python interpreter
  std::string warning = {};  // line for standard error; empty: none
};

// Finds the file to execute. A name with a "/", or of a file in the current
// folder, is that file; other names are searched in PATH. *.py and files
// without an exec bit run under Python with -u: PYTHON_EXEC, else the Python of
// the environment (venv or conda) in whose bin folder `started_as` or a file
// that it links to is, else the first python3 or python in PATH, else that of
// VIRTUAL_ENV. With `always_python`, Python gets the name as it is, so that
// folders and archives with a __main__.py run, too. Reads the file system, but
// changes nothing.
// Errors: kNotFound; kInvalid for a folder, or with `no_python` for a file
// without an exec bit. The message names the places that were searched.
Result<ResolvedProgram> ResolveProgram(const ProgramRequest& request,
                                       const Environment& environment);

// Returns the Python that ResolveProgram takes for *.py. Errors: kNotFound, kInvalid, as above.
Result<std::string> FindPython(const std::string& started_as, const Environment& environment);

}  // namespace rankrun::launcher

#pragma once

#include <string>

#include "base/result.h"

// The program torchrun of a Python environment as an entry to rankrun. It is a text that both a
// shell and Python run, because some tools start torchrun by `python FOLDER/torchrun`.
namespace rankrun::launcher {

// Lets `folder`/torchrun start the program `rankrun`, an absolute path. PyTorch's becomes
// `folder`/torchrun-pytorch, and takes its place again if `rankrun` is gone. Returns a line for
// the user.
// Errors: kInvalid if there is a torchrun that is not PyTorch's, or for a quote in the path
// `rankrun`; those of SystemError.
Result<std::string> InstallTorchrun(const std::string& folder, const std::string& rankrun);

// Undoes InstallTorchrun, if it has been called. Returns a line for the user.
// Errors: those of SystemError.
Result<std::string> UninstallTorchrun(const std::string& folder);

}  // namespace rankrun::launcher

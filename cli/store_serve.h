#pragma once

#include "cli/command.h"
#include "store/server/server.h"

namespace rankrun::cli {

// Runs `rankctl store serve`, which hosts a store until a signal asks it to end.
// Returns the exit code if the store could not start; otherwise the process ends
// by the signal.
int RunServe(const CommandLine& line);

// Returns the options that the flags of `serve` stand for. Looks up addresses.
// Errors: kInvalid; kNotFound for a host without an address.
Result<store::ServerOptions> ServerOptionsOf(const launcher::ParsedFlags& flags);

}  // namespace rankrun::cli

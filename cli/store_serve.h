#pragma once

#include "cli/command.h"
#include "store/server.h"

namespace rankrun::cli {

// `rankctl store serve`: hosts a store until it is told to end. Returns only
// when that could not be begun; otherwise the process ends by the signal.
int RunServe(const CommandLine& line);

// What the flags of `serve` mean; addresses are looked up.
// Errors: kInvalid, kNotFound for a host without an address.
Result<store::ServerOptions> ServerOptionsOf(const launcher::ParsedFlags& flags);

}  // namespace rankrun::cli

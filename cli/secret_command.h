#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// Returns `rankctl secret`, which prints the path of the user's own job secret, or
// makes a new secret.
const Command& SecretCommand();

}  // namespace rankrun::cli

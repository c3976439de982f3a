#pragma once

#include "cli/command.h"

namespace rankrun::cli {

// Returns `rankctl secret`, which shows the user's own job secret's place, or
// makes a new secret.
const Command& SecretCommand();

}  // namespace rankrun::cli

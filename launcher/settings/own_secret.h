#pragma once

#include <string>

#include "base/result.h"
#include "launcher/settings/environment.h"

// The job secret of a user: a file in the user's home that rankrun makes when a
// job first needs it, so that nodes with a shared home need no setting.
namespace rankrun::launcher {

// Shortest secret that is accepted, because shorter ones can be guessed.
constexpr size_t kMinSecretBytes = 16;

// Returns a random secret, 64 hexadecimal digits. Errors: kSystem.
Result<std::string> RandomSecret();

// Returns $XDG_CONFIG_HOME/rankrun/secret, by default ~/.config/rankrun/secret.
// Errors: kInvalid if neither the environment nor the system names a home.
Result<std::string> OwnSecretPath(const Environment& environment);

// Returns the secret in the file at `path`.
// Errors: kNotFound; kInvalid for a file that is not the user's, that others may
// open, or that is shorter than kMinSecretBytes; kSystem.
Result<std::string> ReadOwnSecret(const std::string& path);

// As ReadOwnSecret, but first makes the file with a random secret if there is
// none. Several processes may do so at once; all return the same secret.
Result<std::string> ReadOrMakeOwnSecret(const std::string& path);

// Puts a new random secret into the place of the old one. Errors: kSystem.
Result<void> ReplaceOwnSecret(const std::string& path);

// Returns `text` without the line ends at its end.
// Errors: kInvalid if fewer than kMinSecretBytes are left.
Result<std::string> SecretOf(std::string text);

}  // namespace rankrun::launcher

#pragma once

#include <chrono>
#include <string>

#include "launcher/job_settings.h"

namespace rankrun::launcher {

// This machine, as our process sees it.
Machine ThisMachine();

// A random (version 4) UUID.
std::string RandomUuid();

// The whole text of a file, or of what is written into a named pipe within
// `patience`. Errors: kNotFound; kInvalid for one beyond 1 MiB, a folder, or a
// pipe that brings nothing or no end; kSystem.
Result<std::string> ReadSettingsFile(const std::string& path,
                                     std::chrono::milliseconds patience = std::chrono::seconds(10));

// The file of --secret-file. Errors: as above.
Result<SecretFile> ReadSecretFile(const std::string& path);

// Errors: kNotFound, kSystem.
Result<void> ChangeFolder(const std::string& path);

}  // namespace rankrun::launcher

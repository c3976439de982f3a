#pragma once

#include "launcher/job_settings.h"

namespace rankrun::launcher {

// This machine, as our process sees it.
Machine ThisMachine();

// A random (version 4) UUID.
std::string RandomUuid();

// The whole text of a file. Errors: kNotFound, kInvalid for one beyond 1 MiB,
// kSystem.
Result<std::string> ReadSettingsFile(const std::string& path);

// Errors: kNotFound, kSystem.
Result<void> ChangeFolder(const std::string& path);

}  // namespace rankrun::launcher

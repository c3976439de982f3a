#pragma once

#include <chrono>
#include <string>

#include "launcher/plan/job_settings.h"

namespace rankrun::launcher {

// Returns the facts about this machine and process.
Machine ThisMachine();

// Returns the name of the first address of `host_name`, else its canonical name, if it has a
// domain; else `host_name`: like socket.getfqdn of Python, but only a name that has an address of
// this host. Empty if none has one.
std::string FullNameOf(const std::string& host_name);

// Returns a random UUID (version 4).
std::string RandomUuid();

// Returns the whole text of a file, or of a named pipe whose writers finish
// within `patience`.
// Errors: kNotFound; kInvalid for a text beyond 1 MiB, a folder, or a pipe
// without data or end of file, and for a file whose content another user can
// determine: all may write it, or it is another user's in a folder that all may
// write; kSystem.
Result<std::string> ReadSettingsFile(const std::string& path,
                                     std::chrono::milliseconds patience = std::chrono::seconds(10));

// Reads the file of --secret-file. Errors: as above.
Result<SecretFile> ReadSecretFile(const std::string& path);

// Makes a random secret and a credential of munge with it. Errors: those of
// agent::MakeCredential.
Result<MungeSecret> MakeMungeSecret();

// Changes the working directory. Errors: kNotFound, kSystem.
Result<void> ChangeFolder(const std::string& path);

}  // namespace rankrun::launcher

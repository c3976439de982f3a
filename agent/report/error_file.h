#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace rankrun::agent {

// Returns "<exception type>: <text>" as a Python worker under
// torch.distributed.elastic's @record wrote it. Returns nothing if there is no
// such file, if it has another form, if it is larger than 1 MiB or if it nests
// more than 32 levels deep.
// Source: the error file of pytorch.org/docs/stable/elastic/errors.html
std::optional<std::string> ReadErrorFile(const std::string& path);

// Returns the content for an outer launcher: a message of @record's form with
// `error_code` (-n for signal n) added. Returns nothing if it has another form.
// Pure.
std::optional<std::string> WithErrorCode(const std::string& content, int error_code);

// Copies a worker's error file to that of an outer launcher, as torchrun does
// for the root cause. Writes nothing if there is none to copy.
// Errors: kSystem and other codes of SystemError if the copy cannot be written.
Result<void> CopyErrorFile(const std::string& from, const std::string& to, int error_code);

}  // namespace rankrun::agent

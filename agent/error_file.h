#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace rankrun::agent {

// What a Python worker under torch.distributed.elastic's @record wrote:
// "<exception type>: <text>". Nothing if there is no such file or it has
// another form, or is larger than a MiB. Source: the error file of
// pytorch.org/docs/stable/elastic/errors.html
std::optional<std::string> ReadErrorFile(const std::string& path);

// The same content as a launcher around us is to get it: with `error_code`
// (-n for signal n) in a message of @record's form. Nothing if it has another
// form. Pure.
std::optional<std::string> WithErrorCode(const std::string& content, int error_code);

// Copies a worker's error file to that of the launcher around us, as torchrun
// does for the root cause. Nothing is written if there is none to copy.
// Errors: kSystem and its like, the copy could not be written.
Result<void> CopyErrorFile(const std::string& from, const std::string& to, int error_code);

}  // namespace rankrun::agent

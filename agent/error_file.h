#pragma once

#include <optional>
#include <string>

namespace rankrun::agent {

// What a Python worker under torch.distributed.elastic's @record wrote:
// "<exception type>: <text>". Nothing if there is no such file or it has
// another form. Source: the error file of pytorch.org/docs/stable/elastic/errors.html
std::optional<std::string> ReadErrorFile(const std::string& path);

}  // namespace rankrun::agent

#pragma once

#include <string>
#include <vector>

#include <rankrun/training/data_parallel.h>

#include "base/result.h"

// Text that describes a rank's model and options, by which ranks compare them. Pure.
namespace rankrun::comm {

// Returns the text of a model.
// Errors: kInvalid, an argument that this rank alone can check.
Result<std::string> ModelText(const std::vector<Parameter>& parameters,
                              const DataParallelOptions& options);
// Returns the text of a rank that lacks one.
std::string ModelRefusal(const Error& reason);
// Returns whether `text` has the same hash on ranks with the same text.
uint64_t HashOf(const std::string& text);

// Fails unless all texts are equal and none is a refusal; texts[i] is that of ranks[i].
// Errors: kMismatch, "ranks 0, 2 have 2 parameters, rank 1 has 3 parameters"; kInvalid,
// "rank 1 refused it: <reason>".
Result<void> CompareModelTexts(const std::vector<int>& ranks,
                               const std::vector<std::string>& texts);

}  // namespace rankrun::comm

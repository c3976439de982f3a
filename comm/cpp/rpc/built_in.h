#pragma once

#include <any>
#include <string>
#include <utility>

#include <rankrun/rpc/backend.h>

#include "comm/cpp/rpc/running.h"

// The backends of the library.
namespace rankrun::rpc {

inline constexpr char kTensorPipe[] = "TENSORPIPE";
inline constexpr char kProcessGroup[] = "PROCESS_GROUP";

BackendHandlers TensorPipeHandlers();
BackendHandlers ProcessGroupHandlers();

// Returns the value of an option; throws DistError if it has another type.
template <typename T>
T ValueOf(const std::string& backend, const OptionMap::value_type& option, const char* wanted) {
  if (const T* found = std::any_cast<T>(&option.second)) return *found;
  ThrowInvalid("the option " + option.first + " of " + backend + " has another type: want " +
               wanted);
}

// Throws DistError for options that are null or of another backend.
[[noreturn]] void ThrowOtherOptions(const std::string& backend, const std::string& wanted);

}  // namespace rankrun::rpc

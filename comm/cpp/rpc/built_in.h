#pragma once

#include <any>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <rankrun/rpc/backend.h>

#include "comm/cpp/rpc/running.h"

// The backends of the library, and agents of all backends.
namespace rankrun::rpc {

inline constexpr char kTensorPipe[] = "TENSORPIPE";
inline constexpr char kProcessGroup[] = "PROCESS_GROUP";

BackendHandlers TensorPipeHandlers();
BackendHandlers ProcessGroupHandlers();

// As InitBackend; without a store the workers meet as InitOptions says.
std::unique_ptr<RpcAgent> MakeAgent(const BackendType& backend, std::shared_ptr<Store> store,
                                    const std::string& name, int rank,
                                    std::optional<int> world_size,
                                    std::shared_ptr<RpcBackendOptions> options);

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

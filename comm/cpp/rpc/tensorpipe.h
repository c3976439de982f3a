#pragma once

#include <rankrun/rpc/backend.h>

namespace rankrun::rpc {

inline constexpr char kTensorPipe[] = "TENSORPIPE";

// Returns the functions of the backend "TENSORPIPE".
BackendHandlers TensorPipeHandlers();

}  // namespace rankrun::rpc

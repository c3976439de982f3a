#pragma once

#include "base/private_api.h"

namespace rankrun::comm {

// Stream of GPU work in whose order the calls of this thread run; null: the default
// stream. A plug-in never reads it.
RANKRUN_PRIVATE_API void*& CurrentStream();

}  // namespace rankrun::comm

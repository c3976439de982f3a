#include <utility>

#include <rankrun/stream.h>

#include "comm/core/current_stream.h"

namespace rankrun {

void* SetStream(void* stream) { return std::exchange(comm::CurrentStream(), stream); }

}  // namespace rankrun

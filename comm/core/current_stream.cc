#include "comm/core/current_stream.h"

namespace rankrun::comm {

void*& CurrentStream() {
  thread_local void* stream = nullptr;
  return stream;
}

}  // namespace rankrun::comm

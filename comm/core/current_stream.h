#pragma once

namespace rankrun::comm {

// Stream of GPU work in whose order the calls of this thread run; null: the default
// stream. A plug-in never reads it.
inline void*& CurrentStream() {
  thread_local void* stream = nullptr;
  return stream;
}

}  // namespace rankrun::comm

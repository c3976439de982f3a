#pragma once

#include <string>

// Record of the calls that a program makes to the fakes of CUDA and NCCL, and the
// errors that these return. In libcudart.so of the fakes, which tests load.
#pragma GCC visibility push(default)
extern "C" {

// Adds one line.
void fake_trace_add(const char* line);
// Returns all lines and forgets them. Valid until the next call in this thread.
const char* fake_trace_take();

// Makes the next call of `function` fail with `status`.
void fake_fail_next(const char* function, int status);
// Makes the next call of `function` go on in the background until it is aborted.
void fake_stall_next(const char* function);
// Returns whether this call of `function` does.
bool fake_stalls(const char* function);
// Returns the status with which this call of `function` fails; 0: it does not.
int fake_status_of(const char* function);

}  // extern "C"
#pragma GCC visibility pop

namespace rankrun::fake_cuda {

inline void Trace(const std::string& line) { fake_trace_add(line.c_str()); }

}  // namespace rankrun::fake_cuda

#pragma once

#include <string>

#include "agent/health/worker_sample.h"

namespace rankrun::agent {

// Returns the state of a running worker in a word or two: "running", "sleeping", "traced by gdb".
// `sample` has the facts of its process. Pure.
std::string StateInWords(const WorkerSample& sample);

}  // namespace rankrun::agent

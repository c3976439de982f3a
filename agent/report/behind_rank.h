#pragma once

#include <vector>

#include "agent/report/attempt_record.h"

namespace rankrun::agent {

// Notes in the endings of the workers that wait in a collective which rank has not called it, if
// that is one rank only and the calls of all others are known (docs/supervision.md). Needs their
// `calls` and `ending`. Pure.
void NoteRankBehind(AttemptRecord& record);

}  // namespace rankrun::agent

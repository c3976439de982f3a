#pragma once

#include "agent/report/event.h"

namespace rankrun::agent {

// Cuts a report to what a kept document has room for: less than 1 MiB of JSON, whatever the
// job. The cause keeps most, then workers that failed by themselves, then the others; the
// least important ones are only counted. Pure.
void TrimReport(events::Report& report);

}  // namespace rankrun::agent

#pragma once

namespace rankrun::agent {

// The workers' oom_score_adj, above our own: when memory runs out, a worker is a
// better victim than who reports its end.
int WorkersOomScore();

}  // namespace rankrun::agent

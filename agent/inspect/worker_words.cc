#include "agent/inspect/worker_words.h"

namespace rankrun::agent {

std::string StateInWords(const WorkerSample& sample) {
  const ProcessFacts facts = sample.process.value_or(ProcessFacts{});
  if (facts.tracer != 0) {
    return "traced by " +
           (facts.tracer_name.empty() ? "pid " + std::to_string(facts.tracer) : facts.tracer_name);
  }
  switch (facts.state) {
    case 'R':
      return "running";
    case 'S':
    case 'I':
      return facts.call == CallKind::kSleep ? "sleeping" : "waiting";
    case 'D':
      return "in the kernel";
    case 'T':
      return "stopped";
    case 't':
      return "traced";
    case 'Z':
    case 'X':
    case 0:
      return "ended";
    default:
      return std::string("state ") + facts.state;
  }
}

}  // namespace rankrun::agent

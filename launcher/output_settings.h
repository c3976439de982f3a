#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/output_spec.h"
#include "launcher/note.h"
#include "launcher/settings.h"

namespace rankrun::launcher {

// What else the plan for the output depends on.
struct OutputContext {
  int workers;
  bool as_torchrun;  // only teed lines carry a prefix, unless one is asked for
  Environment environment;
  bool several_nodes = false;
};

struct OutputPlan {
  agent::OutputSpec spec;
  std::vector<Note> ignored;
};

// Reads --redirects, --tee, the filters, --log-*, --prefix, --stdin and --pty,
// with torchrun's rules. Pure.
// Errors: kInvalid, one line.
Result<OutputPlan> ReadOutput(const Settings& settings, const OutputContext& context);

// The texts of a list in which a comma is written twice. Pure.
std::vector<std::string> ParseFilters(std::string_view list);

}  // namespace rankrun::launcher

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/job/output_spec.h"
#include "launcher/settings/note.h"
#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// Facts besides the settings that the plan for the output depends on.
struct OutputContext {
  int workers;
  bool as_torchrun;  // only teed lines have a prefix, unless --prefix is given
  Environment environment;
  bool several_nodes = false;
};

// The part of a plan about output.
struct OutputPlan {
  agent::OutputSpec spec;
  std::vector<Note> ignored;
  std::vector<std::string> warnings;  // lines for the user, without a prefix
};

// Reads --redirects, --tee, the filters, --log-*, --prefix, --stdin and --pty
// by the rules of torchrun. Pure.
// Errors: kInvalid, one line.
Result<OutputPlan> ReadOutput(const Settings& settings, const OutputContext& context);

// Splits a list at its commas; two commas stand for one within a text. Pure.
std::vector<std::string> ParseFilters(std::string_view list);

}  // namespace rankrun::launcher

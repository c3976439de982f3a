// rankrun-stacks: reads the stacks of processes, for rankrun and rankctl.

#include <string>
#include <vector>

#include "agent/stacks/helper/helper.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return rankrun::agent::RunStacksHelper(arguments);
}

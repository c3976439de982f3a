// rankctl: inspects the stores of jobs, or hosts one.

#include <signal.h>

#include <string>
#include <vector>

#include "cli/command.h"

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);  // writes to a closed pipe return an error instead
  return rankrun::cli::RunRankctl(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}

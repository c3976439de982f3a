// rankrun: starts, supervises and restarts the workers of a distributed job.

#include <string>
#include <vector>

#include "agent/guardian/guardian.h"
#include "launcher/launch.h"

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  rankrun::agent::RunGuarded([&arguments](rankrun::agent::Incarnation& incarnation) {
    rankrun::launcher::RunAgent(arguments, incarnation);
  });
}

// rankrun: starts, supervises and restarts the workers of a distributed job.

#include <string>
#include <vector>

#include "agent/guardian/guardian.h"
#include "agent/report/event_log.h"
#include "launcher/launch.h"
#include "launcher/plan/secret_settings.h"

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  rankrun::agent::RunGuarded({.agent_main =
                                  [&arguments](rankrun::agent::Incarnation& incarnation) {
                                    rankrun::launcher::RunAgent(arguments, incarnation);
                                  },
                              .on_end = rankrun::agent::WriteEndWithoutAgent,
                              .secret_variable = rankrun::launcher::kSecretVariable});
}

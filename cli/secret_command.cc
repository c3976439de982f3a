#include "cli/secret_command.h"

#include <array>
#include <string>

#include "cli/output.h"
#include "launcher/settings/own_secret.h"

namespace rankrun::cli {
namespace {

using launcher::Flag;

constexpr std::array kFlags{
    Flag{.name = "new",
         .help = "Make a new secret, in the place of the old one.",
         .details = "Running jobs keep the secret that they started with. Nodes that start later "
                    "cannot join them."},
    kHelpFlag};

int RunSecret(const CommandLine& line) {
  auto path = launcher::OwnSecretPath(launcher::VariableOfProcess);
  if (!path) return Fail(path.error().message, kExitUsage);
  if (line.flags.Has("new")) {
    auto replaced = launcher::ReplaceOwnSecret(*path);
    if (!replaced) return Fail(replaced.error().message, kExitNo);
  } else if (auto secret = launcher::ReadOwnSecret(*path); !secret) {
    bool is_absent = secret.error().code == ErrorCode::kNotFound;
    return Fail(
        secret.error().message +
            (is_absent ? "; rankctl secret --new makes it, as does the first job on several hosts"
                       : ""),
        kExitNo);
  }
  return Print(*path + "\n");
}

constexpr Command kCommand = {
    .title = "rankctl secret",
    .name = "secret",
    .help = "Print the path of the file with the user's own job secret.",
    .details =
        "All nodes of a job need the same secret. The first job on several hosts makes the "
        "file, unless a setting gives its secret; see `rankrun`(1). Where hosts do not "
        "share the user's home, copy the file to each of them. The command fails if the "
        "file cannot be used.",
    .flags = kFlags,
    .run = RunSecret};

}  // namespace

const Command& SecretCommand() { return kCommand; }

}  // namespace rankrun::cli

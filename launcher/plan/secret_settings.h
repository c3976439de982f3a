#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/settings/environment.h"
#include "launcher/settings/note.h"
#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// Name of the variable that holds the secret.
inline constexpr const char* kSecretVariable = "RANKRUN_SECRET";
// Name of the variable for --secret-file.
inline constexpr const char* kSecretFileVariable = "RANKRUN_SECRET_FILE";

// File with the secret in a container of Kubernetes, where a volume of the pod
// puts it.
inline constexpr const char* kMountedSecret = "/var/run/secrets/rankrun/secret";

// Content of a file with a secret.
struct SecretFile {
  std::string text;
  bool others_may_read = false;
};

// A secret that munge hands over to the other nodes.
struct MungeSecret {
  std::string secret;
  std::string credential;
};

// Inputs of ReadSecret besides the settings.
struct SecretContext {
  Environment environment;
  // Variables of a secret that are set, but empty; `environment` does not show them.
  std::vector<std::string> empty_variables = {};
  std::function<Result<SecretFile>(const std::string& path)> read_file = {};
  // Reads the user's own secret, or makes it. Its place is shown in messages.
  std::function<Result<std::string>(const std::string& path)> read_own = {};
  // Makes a random secret, and munge's credential to hand it over.
  std::function<Result<MungeSecret>()> make_munge = {};
  bool is_container = false;
  bool is_exposed = true;    // an endpoint is no loopback address
  bool is_optional = false;  // by the name torchrun: none unless a setting gives it
};

// The job secret.
struct SecretPlan {
  std::string secret;            // bytes; empty: none
  std::string origin;            // for messages: a path, or RANKRUN_SECRET; empty: none
  std::string munge_credential;  // empty: munge does not hand the secret over
  bool is_own = false;           // `origin` is the file of the user's own secret
  std::string advice;            // as agent::NodesSpec::secret_advice
  std::vector<Note> ignored;
  std::vector<std::string> warnings;  // lines for standard error
};

// Returns the job secret: that of --secret-file or RANKRUN_SECRET; for a job
// that other hosts can reach else the mounted one in Kubernetes, or a random one
// that munge hands over in a job of SLURM, else the user's own. --insecure allows a job without a
// secret. Pure, except for the functions of `context`. Errors: kInvalid, one line that names the
// flag, variable or file.
Result<SecretPlan> ReadSecret(const Settings& settings, const SecretContext& context);

}  // namespace rankrun::launcher

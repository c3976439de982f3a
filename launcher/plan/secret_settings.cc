#include "launcher/plan/secret_settings.h"

#include <utility>

#include "launcher/settings/own_secret.h"

namespace rankrun::launcher {
namespace {

class SecretReader {
 public:
  SecretReader(const Settings& settings, const SecretContext& context)
      : settings_(settings), context_(context) {}

  Result<SecretPlan> Read() {
    auto path = settings_.Text("secret-file");
    auto variable = context_.environment(kSecretVariable);
    if (path && path->empty()) {
      return settings_.Wrong("secret-file", "is empty, want the name of a file");
    }
    if (!path && !context_.empty_variables.empty()) {  // such as "$(cat missing)"
      const std::string& name = context_.empty_variables.front();
      const std::string wanted = name == kSecretVariable ? "a secret" : "the name of a file";
      return Error{ErrorCode::kInvalid,
                   name + " is empty, want " + wanted + "; unset it to have none"};
    }
    if (settings_.IsOn("insecure") && (path || variable)) {
      return settings_.Wrong("insecure", "is for a job without a secret, but " +
                                             (path ? settings_.OriginOf("secret-file")
                                                   : std::string(kSecretVariable)) +
                                             " gives one");
    }
    if (path && variable) {
      plan_.ignored.push_back(
          {kSecretVariable, "overridden by " + settings_.OriginOf("secret-file")});
    }
    if (path) return ReadFile(settings_.OriginOf("secret-file"), *path);
    if (variable) return Take(kSecretVariable, *variable);
    bool has_none = !context_.is_exposed || context_.is_optional || settings_.IsOn("insecure");
    if (has_none) return std::move(plan_);
    if (IsPod()) {
      auto mounted = ReadFile("", kMountedSecret);
      if (mounted || mounted.error().code != ErrorCode::kNotFound) return mounted;
    }
    if (context_.environment("SLURM_JOB_ID")) {
      if (auto munge = context_.make_munge()) {
        plan_.munge_credential = std::move(munge->credential);
        return Take("munge", std::move(munge->secret));
      }
    }
    return ReadOwn();
  }

 private:
  // `flag`: origin of the path; empty if no setting names it.
  Result<SecretPlan> ReadFile(const std::string& flag, const std::string& path) {
    const std::string prefix = flag.empty() ? "" : flag + ": ";
    auto file = context_.read_file(path);
    if (!file) return flag.empty() ? std::move(file).error() : std::move(file).error().In(flag);
    if (!flag.empty() && file->others_may_read) {
      plan_.warnings.push_back(prefix + path + ": other users may read it, want mode 0600");
    }
    return Take(prefix + path, std::move(file->text));
  }

  Result<SecretPlan> ReadOwn() {
    auto path = OwnSecretPath(context_.environment);
    auto secret = path ? context_.read_own(*path) : Result<std::string>(path.error());
    if (!secret) {
      return Error{ErrorCode::kInvalid, "the job needs a secret: " + secret.error().message +
                                            "; want " + WaysToShare() +
                                            ", the same on all nodes, or --insecure"};
    }
    plan_.is_own = true;
    if (IsPod() || context_.is_container) {
      plan_.advice = std::string("; each ") + (IsPod() ? "pod" : "container") +
                     " has a home of its own, so give all nodes one secret: " + WaysToShare();
    }
    return Take(*path, std::move(*secret));
  }

  bool IsPod() const { return context_.environment("KUBERNETES_SERVICE_HOST").has_value(); }

  // Returns "A, B or C".
  std::string WaysToShare() const {
    std::string mounted =
        IsPod() ? std::string("a file that Kubernetes mounts at ") + kMountedSecret + ", " : "";
    return mounted + kSecretVariable + " or --secret-file";
  }

  Result<SecretPlan> Take(const std::string& origin, std::string text) {
    auto secret = SecretOf(std::move(text));
    if (!secret) return std::move(secret).error().In(origin);
    plan_.secret = std::move(*secret);
    plan_.origin = origin;
    return std::move(plan_);
  }

  const Settings& settings_;
  const SecretContext& context_;
  SecretPlan plan_;
};

}  // namespace

Result<SecretPlan> ReadSecret(const Settings& settings, const SecretContext& context) {
  return SecretReader(settings, context).Read();
}

}  // namespace rankrun::launcher

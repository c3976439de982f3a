#include "launcher/plan/secret_settings.h"

#include <gmock/gmock.h>

#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kSecret = "sixteen bytes ok";
const std::string kOwn = "made by rankrun itself";

Result<SecretFile> ReadTestFile(const std::string& path) {
  if (path == "secret") return SecretFile{kSecret + "\n", false};
  if (path == "open") return SecretFile{kSecret, true};
  if (path == "empty") return SecretFile{"\r\n", false};
  if (path == "short") return SecretFile{"fifteen bytes..\n", false};
  return Error{ErrorCode::kNotFound, path + ": No such file or directory"};
}

// A user at home, at a shell.
SecretContext ContextOf(Variables variables) {
  variables.emplace("HOME", "/home/ada");
  return {.environment = EnvironmentOf(variables),
          .read_file = ReadTestFile,
          .read_own = [](const std::string&) { return Result<std::string>(kOwn); },
          .make_munge = []() -> Result<MungeSecret> {
            return Error{ErrorCode::kNotFound, "libmunge.so.2: cannot open shared object file"};
          }};
}

SecretPlan ReadIn(const SecretContext& context, const Words& flags = {}) {
  auto plan = ReadSecret(SettingsOf(flags), context);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? *plan : SecretPlan{};
}

std::string ErrorIn(const SecretContext& context, const Words& flags = {}) {
  auto plan = ReadSecret(SettingsOf(flags), context);
  if (plan) return "accepted";
  EXPECT_EQ(plan.error().code, ErrorCode::kInvalid);
  return plan.error().message;
}

TEST(SecretSettingsTest, AFileOrAVariableGivesTheSecret) {
  SecretPlan of_file = ReadIn(ContextOf({}), {"--secret-file=secret"});
  EXPECT_EQ(of_file.secret, kSecret);
  EXPECT_EQ(of_file.origin, "--secret-file: secret");
  EXPECT_FALSE(of_file.is_own);
  SecretPlan of_variable = ReadIn(ContextOf({{"RANKRUN_SECRET", kSecret}}));
  EXPECT_EQ(of_variable.secret, kSecret);
  EXPECT_EQ(of_variable.origin, "RANKRUN_SECRET");
}

TEST(SecretSettingsTest, TheFileOverridesTheVariable) {
  SecretPlan plan =
      ReadIn(ContextOf({{"RANKRUN_SECRET", "another secret of it"}}), {"--secret-file=secret"});
  EXPECT_EQ(plan.secret, kSecret);
  EXPECT_THAT(plan.ignored, ElementsAre(Note{"RANKRUN_SECRET", "overridden by --secret-file"}));
}

TEST(SecretSettingsTest, ASecretThatCannotBeUsedIsRefused) {
  EXPECT_EQ(ErrorIn(ContextOf({}), {"--secret-file=empty"}),
            "--secret-file: empty: is empty, want a secret");
  EXPECT_EQ(ErrorIn(ContextOf({}), {"--secret-file=short"}),
            "--secret-file: short: the secret has 15 bytes, want at least 16");
  EXPECT_EQ(ErrorIn(ContextOf({{"RANKRUN_SECRET", "psst"}})),
            "RANKRUN_SECRET: the secret has 4 bytes, want at least 16");
  EXPECT_EQ(ReadSecret(SettingsOf({"--secret-file=gone"}), ContextOf({})).error().message,
            "--secret-file: gone: No such file or directory");
}

TEST(SecretSettingsTest, AnEmptyVariableIsRefusedEvenIfInsecureIsTyped) {
  SecretContext context = ContextOf({});
  context.empty_variables = {"RANKRUN_SECRET"};
  for (const Words& flags : {Words{}, Words{"--insecure"}}) {
    EXPECT_EQ(ErrorIn(context, flags),
              "RANKRUN_SECRET is empty, want a secret; unset it to have none");
  }
  EXPECT_EQ(ReadIn(context, {"--secret-file=secret"}).secret, kSecret);
}

TEST(SecretSettingsTest, AnEmptyNameOfTheFileIsRefused) {
  SecretContext context = ContextOf({{"RANKRUN_SECRET", kSecret}});
  context.empty_variables = {"RANKRUN_SECRET_FILE"};
  EXPECT_EQ(ErrorIn(context),
            "RANKRUN_SECRET_FILE is empty, want the name of a file; unset it to have none");
  EXPECT_EQ(ReadIn(context, {"--secret-file=secret"}).secret, kSecret);
}

TEST(SecretSettingsTest, AFileThatOthersMayReadIsAWarning) {
  EXPECT_THAT(ReadIn(ContextOf({}), {"--secret-file=open"}).warnings,
              ElementsAre("--secret-file: open: other users may read it, want mode 0600"));
  EXPECT_THAT(ReadIn(ContextOf({}), {"--secret-file=secret"}).warnings, IsEmpty());
}

TEST(SecretSettingsTest, AJobThatOtherHostsCanReachHasTheUsersOwnSecret) {
  SecretPlan plan = ReadIn(ContextOf({}));
  EXPECT_EQ(plan.secret, kOwn);
  EXPECT_EQ(plan.origin, "/home/ada/.config/rankrun/secret");
  EXPECT_TRUE(plan.is_own);
  SecretContext on_loopback = ContextOf({});
  on_loopback.is_exposed = false;
  EXPECT_EQ(ReadIn(on_loopback).secret, "");
}

TEST(SecretSettingsTest, ContainersHaveHomesOfTheirOwn) {
  EXPECT_EQ(ReadIn(ContextOf({})).advice, "");
  SecretContext container = ContextOf({});
  container.is_container = true;
  EXPECT_EQ(ReadIn(container).advice,
            "; each container has a home of its own, so give all nodes one secret: RANKRUN_SECRET "
            "or --secret-file");
  EXPECT_EQ(ReadIn(container, {"--secret-file=secret"}).advice, "") << "all nodes may have it";
  EXPECT_EQ(
      ReadIn(ContextOf({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}})).advice,
      "; each pod has a home of its own, so give all nodes one secret: a file that Kubernetes "
      "mounts at /var/run/secrets/rankrun/secret, RANKRUN_SECRET or --secret-file");
}

TEST(SecretSettingsTest, WithoutASecretTheJobMustBeInsecure) {
  SecretContext context = ContextOf({});
  context.read_own = [](const std::string& path) {
    return Result<std::string>(Error{ErrorCode::kSystem, path + ": Read-only file system"});
  };
  EXPECT_EQ(ErrorIn(context),
            "the job needs a secret: /home/ada/.config/rankrun/secret: Read-only file system; want "
            "RANKRUN_SECRET or --secret-file, the same on all nodes, or --insecure");
  context.environment = EnvironmentOf({{"HOME", "/"}, {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}});
  EXPECT_EQ(ErrorIn(context),
            "the job needs a secret: /.config/rankrun/secret: Read-only file system; want a file "
            "that Kubernetes mounts at /var/run/secrets/rankrun/secret, RANKRUN_SECRET or "
            "--secret-file, the same on all nodes, or --insecure");
  context.environment = EnvironmentOf({{"HOME", "none"}});
  EXPECT_EQ(ErrorIn(context),
            "the job needs a secret: this user has no home folder (HOME is not set); want "
            "RANKRUN_SECRET or --secret-file, the same on all nodes, or --insecure");
  EXPECT_EQ(ReadIn(context, {"--insecure"}).secret, "");
}

TEST(SecretSettingsTest, ByTheNameTorchrunTheSecretIsOptional) {
  SecretContext context = ContextOf({});
  context.is_optional = true;
  EXPECT_EQ(ReadIn(context).secret, "");
  EXPECT_EQ(ReadIn(context, {"--secret-file=secret"}).secret, kSecret);
}

TEST(SecretSettingsTest, ASecretContradictsInsecure) {
  EXPECT_EQ(ErrorIn(ContextOf({}), {"--insecure", "--secret-file=secret"}),
            "--insecure: is for a job without a secret, but --secret-file gives one");
  EXPECT_EQ(ErrorIn(ContextOf({{"RANKRUN_SECRET", kSecret}}), {"--insecure"}),
            "--insecure: is for a job without a secret, but RANKRUN_SECRET gives one");
}

TEST(SecretSettingsTest, InAJobOfSlurmMungeHandsTheSecretOver) {
  SecretContext context = ContextOf({{"SLURM_JOB_ID", "17"}});
  EXPECT_EQ(ReadIn(context).secret, kOwn) << "munge is not there";
  auto make = []() -> Result<MungeSecret> { return MungeSecret{kSecret, "MUNGE:..."}; };
  context.make_munge = make;
  SecretPlan plan = ReadIn(context);
  EXPECT_EQ(plan.secret, kSecret);
  EXPECT_EQ(plan.munge_credential, "MUNGE:...");
  EXPECT_EQ(plan.origin, "munge");
  EXPECT_EQ(ReadIn(context, {"--insecure"}).secret, "");
  SecretPlan of_file = ReadIn(context, {"--secret-file=secret"});
  EXPECT_EQ(of_file.munge_credential, "");
  SecretContext at_a_shell = ContextOf({});
  at_a_shell.make_munge = make;
  EXPECT_EQ(ReadIn(at_a_shell).secret, kOwn);
}

TEST(SecretSettingsTest, KubernetesMayMountTheSecret) {
  SecretContext context = ContextOf({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}});
  EXPECT_EQ(ReadIn(context).secret, kOwn) << "nothing is mounted";
  auto mounted = [](const std::string& path) -> Result<SecretFile> {
    EXPECT_EQ(path, "/var/run/secrets/rankrun/secret");
    return SecretFile{kSecret, true};
  };
  context.read_file = mounted;
  SecretPlan plan = ReadIn(context);
  EXPECT_EQ(plan.secret, kSecret);
  EXPECT_EQ(plan.origin, kMountedSecret);
  EXPECT_THAT(plan.warnings, IsEmpty()) << "all files of a volume are readable";
  SecretContext at_a_shell = ContextOf({});
  at_a_shell.read_file = mounted;
  EXPECT_EQ(ReadIn(at_a_shell).secret, kOwn);
}

}  // namespace
}  // namespace rankrun::launcher

#include "launcher/plan/machine.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agent/control/munge.h"
#include "agent/machine/gpus.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/process/cpus.h"
#include "launcher/settings/own_secret.h"

extern char** environ;

namespace rankrun::launcher {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxFileBytes = 1024 * 1024;

int UsableCpus() {
  auto allowed = AllowedCpus();
  return allowed ? static_cast<int>(allowed->size()) : 1;
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::string HostsFile() {
  auto text = ReadSettingsFile("/etc/hosts");
  return text ? *text : "";
}

Error Invalid(const std::string& path, const std::string& what) {
  return {ErrorCode::kInvalid, path + ": " + what};
}

// Waits for data or end of file. Returns false at the deadline.
bool WaitFor(int fd, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    int ready = poll(&entry, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace

Machine ThisMachine() {
  Machine machine{.environment = VariableOfProcess,
                  .variables = {},
                  .visible_gpus = [](const auto& visible) { return agent::VisibleGpus(visible); },
                  .cpus = UsableCpus(),
                  .open_files = {},
                  .random_id = RandomUuid(),
                  .host_name = HostName(),
                  .read_secret = ReadSecretFile,
                  .read_own_secret = ReadOrMakeOwnSecret,
                  .make_munge_secret = MakeMungeSecret};
  machine.scheduler = ReadScheduler({.environment = machine.environment,
                                     .host_name = machine.host_name,
                                     .hosts_file = HostsFile});
  for (char** entry = environ; *entry != nullptr; ++entry) machine.variables.emplace_back(*entry);
  return machine;
}

std::string RandomUuid() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return std::to_string(getpid());
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string text;
  for (size_t i = 0; i < sizeof bytes; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 0x0f];
  }
  return text;
}

Result<std::string> ReadSettingsFile(const std::string& path, milliseconds patience) {
  // Without O_NONBLOCK, open() of a pipe waits for a writer.
  Fd file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return SystemError(path, errno);
  struct stat status;
  if (fstat(file.get(), &status) != 0) return SystemError(path, errno);
  if (S_ISDIR(status.st_mode)) return Invalid(path, "is a folder, want a file");
  auto deadline = std::chrono::steady_clock::now() + patience;
  std::string text;
  char buffer[16 * 1024];
  // Until the first data, "end of file" of a pipe only means that it has no
  // writer yet.
  bool wait = !S_ISREG(status.st_mode);
  for (;;) {
    if (wait && !WaitFor(file.get(), deadline)) {
      std::string what = text.empty() ? "no data within " : "no end of file within ";
      return Invalid(path, what + FormatSeconds(patience));
    }
    ssize_t got = read(file.get(), buffer, sizeof buffer);
    wait = got < 0 && errno == EAGAIN;
    if (wait || (got < 0 && errno == EINTR)) continue;
    if (got < 0) return SystemError(path, errno);
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMaxFileBytes) return Invalid(path, "larger than 1 MiB");
  }
}

Result<SecretFile> ReadSecretFile(const std::string& path) {
  auto text = ReadSettingsFile(path);
  if (!text) return std::move(text).error();
  struct stat status;
  bool is_file = stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  bool others = is_file && (status.st_mode & (S_IRGRP | S_IROTH)) != 0;
  return SecretFile{std::move(*text), others};
}

Result<MungeSecret> MakeMungeSecret() {
  auto secret = RandomSecret();
  if (!secret) return std::move(secret).error();
  auto credential = agent::MakeCredential(*secret);
  if (!credential) return std::move(credential).error();
  return MungeSecret{std::move(*secret), std::move(*credential)};
}

Result<void> ChangeFolder(const std::string& path) {
  if (chdir(path.c_str()) != 0) return SystemError(path, errno);
  return {};
}

}  // namespace rankrun::launcher

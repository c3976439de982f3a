#include "launcher/plan/machine.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "agent/control/munge.h"
#include "agent/machine/accelerators.h"
#include "agent/process/descendants.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/host_name.h"
#include "base/net/network_interface.h"
#include "base/net/socket_address.h"
#include "base/own_path.h"
#include "base/process/cpu_limit.h"
#include "base/process/cpus.h"
#include "base/random_bytes.h"
#include "launcher/scheduler/mpi.h"
#include "launcher/settings/own_secret.h"

extern char** environ;

namespace rankrun::launcher {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxFileBytes = 1024 * 1024;
constexpr std::chrono::seconds kPatience{10};

int UsableCpus() {
  auto allowed = AllowedCpus();
  return allowed ? static_cast<int>(allowed->size()) : 1;
}

bool IsOfThisHost(const std::string& name) {
  auto is_here = IsThisHost(name);
  return is_here && *is_here;
}

// Returns the nearest process above our guardian that is an MPI launcher. A
// shell script may be between the two.
std::optional<pid_t> FindMpirun() {
  constexpr std::string_view kNames[] = {"mpirun", "mpiexec", "mpiexec.hydra", "orterun",
                                         "orted",  "prterun", "prted",         "hydra_pmi_proxy"};
  const pid_t guardian = getppid();
  for (pid_t pid = agent::ParentOf(guardian); pid > 1; pid = agent::ParentOf(pid)) {
    std::string name = agent::ReadOfProcess(pid, "comm");
    if (name.ends_with('\n')) name.pop_back();
    if (std::ranges::find(kNames, name) != std::end(kNames)) return pid;
  }
  return std::nullopt;
}

// Docker, Podman and systemd-nspawn leave these signs.
bool IsContainer() {
  return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
         VariableOfProcess("container").has_value();
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

struct OpenedFile {
  Fd fd;
  struct stat status;
};

// Returns an error if another user can determine the content of the file.
Result<void> CheckTrust(const std::string& path, const struct stat& status) {
  if (S_ISREG(status.st_mode) && (status.st_mode & S_IWOTH) != 0) {
    return Invalid(path, "all users may write it; want it closed to them (chmod o-w)");
  }
  bool is_ours = status.st_uid == 0 || status.st_uid == geteuid();
  struct stat folder;
  std::string parent = std::filesystem::path(path).parent_path();
  bool is_shared =
      stat(parent.empty() ? "." : parent.c_str(), &folder) == 0 && (folder.st_mode & S_IWOTH) != 0;
  if (is_ours || !is_shared) return {};
  return Invalid(path, "belongs to user " + std::to_string(status.st_uid) +
                           ", in a folder that all users may write");
}

// Opens a file with settings. Checks what it has opened, so that nobody can
// replace the file in between.
Result<OpenedFile> OpenTrusted(const std::string& path) {
  // Without O_NONBLOCK, open() of a pipe waits for a writer.
  OpenedFile file{Fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)), {}};
  if (!file.fd) return SystemError(path, errno);
  if (fstat(file.fd.get(), &file.status) != 0) return SystemError(path, errno);
  if (S_ISDIR(file.status.st_mode)) return Invalid(path, "is a folder, want a file");
  if (auto trusted = CheckTrust(path, file.status); !trusted) return std::move(trusted).error();
  return file;
}

Result<std::string> ReadAll(const OpenedFile& file, const std::string& path,
                            milliseconds patience) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  std::string text;
  char buffer[16 * 1024];
  // Until the first data, "end of file" of a pipe only means that it has no
  // writer yet.
  bool wait = !S_ISREG(file.status.st_mode);
  for (;;) {
    if (wait && !WaitFor(file.fd.get(), deadline)) {
      std::string what = text.empty() ? "no data within " : "no end of file within ";
      return Invalid(path, what + FormatSeconds(patience));
    }
    ssize_t got = read(file.fd.get(), buffer, sizeof buffer);
    wait = got < 0 && errno == EAGAIN;
    if (wait || (got < 0 && errno == EINTR)) continue;
    if (got < 0) return SystemError(path, errno);
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMaxFileBytes) return Invalid(path, "larger than 1 MiB");
  }
}

}  // namespace

Machine ThisMachine() {
  Machine machine{
      .environment = VariableOfProcess,
      .variables = {},
      .accelerators = [](const auto& variables) { return agent::FindAccelerators(variables); },
      .visible_gpus = [](const auto& used) { return agent::VisibleDevices(used); },
      .cpus = UsableCpus(),
      .online_cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
      .open_files = {},
      .random_id = RandomUuid(),
      .cpu_limit =
          [] {
            static const auto limit = ReadCpuLimit();
            return limit;
          },
      .host_name = HostName(),
      .full_host_name = [] { return FullNameOf(HostName()); },
      .read_secret = ReadSecretFile,
      .read_own_secret = ReadOrMakeOwnSecret,
      .make_munge_secret = MakeMungeSecret,
      .is_container = IsContainer()};
  machine.scheduler = ReadScheduler({.environment = machine.environment,
                                     .host_name = machine.host_name,
                                     .hosts_file = HostsFile});
  if (IsPreparedForMpi(machine.environment)) machine.mpirun = FindMpirun();
  for (char** entry = environ; *entry != nullptr; ++entry) machine.variables.emplace_back(*entry);
  return machine;
}

std::string FullNameOf(const std::string& host_name) {
  addrinfo hints{};
  hints.ai_flags = AI_CANONNAME;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  if (getaddrinfo(host_name.c_str(), nullptr, &hints, &raw) != 0) return "";
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(raw, freeaddrinfo);
  char reverse[NI_MAXHOST] = {};
  bool has_reverse = getnameinfo(found->ai_addr, found->ai_addrlen, reverse, sizeof reverse,
                                 nullptr, 0, NI_NAMEREQD) == 0;
  const char* canonical = found->ai_canonname;
  for (std::string full : {std::string(has_reverse ? reverse : ""),
                           std::string(canonical != nullptr ? canonical : "")}) {
    if (full.find('.') != full.npos && IsOfThisHost(full)) return full;
  }
  return IsOfThisHost(host_name) ? host_name : "";
}

std::string RandomUuid() {
  unsigned char bytes[16];
  if (!FillRandom(bytes)) return std::to_string(getpid());
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
  auto file = OpenTrusted(path);
  if (!file) return std::move(file).error();
  return ReadAll(*file, path, patience);
}

Result<SecretFile> ReadSecretFile(const std::string& path) {
  auto file = OpenTrusted(path);
  if (!file) return std::move(file).error();
  if (!IsOwnUserOrSystem(file->status.st_uid)) {
    return Invalid(path, "belongs to user " + std::to_string(file->status.st_uid) +
                             ", want a file of user " + std::to_string(geteuid()) +
                             " or root, because another user knows its secret");
  }
  auto text = ReadAll(*file, path, kPatience);
  if (!text) return std::move(text).error();
  bool is_file = S_ISREG(file->status.st_mode);
  bool others = is_file && (file->status.st_mode & (S_IRGRP | S_IROTH)) != 0;
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

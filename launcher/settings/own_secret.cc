#include "launcher/settings/own_secret.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/fd.h"
#include "base/own_file.h"
#include "base/random_bytes.h"
#include "base/write_all.h"

namespace rankrun::launcher {
namespace {

constexpr size_t kRandomBytes = 32;
constexpr size_t kMaxFileBytes = 64 * 1024;

Error Invalid(const std::string& path, const std::string& what) {
  return {ErrorCode::kInvalid, path + ": " + what};
}

// Writes a random secret to a new file beside `path`. New folders are the user's alone.
Result<FileDraft> MakeDraft(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  if (auto made = MakeOwnFolders(folder, 0700); !made) return std::move(made).error();
  auto secret = RandomSecret();
  if (!secret) return std::move(secret).error();
  auto draft = FileDraft::Create(path);
  if (!draft) return draft;
  auto written = TryWriteAll(draft->fd(), *secret + "\n");
  if (written && fsync(draft->fd()) != 0) written = SystemError("fsync", errno);
  if (!written) return std::move(written).error().In(path);
  return draft;
}

// Makes the file, unless another process has just done so.
Result<void> Make(const std::string& path) {
  auto draft = MakeDraft(path);
  if (!draft) return std::move(draft).error();
  return draft->FinishIfAbsent();
}

Result<void> CheckOwner(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return Invalid(path, "is not a file");
  if (status.st_uid != geteuid()) {
    return Invalid(path, "belongs to user " + std::to_string(status.st_uid) +
                             ", want a file of user " + std::to_string(geteuid()));
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Invalid(path, "other users may open it; want mode 0600: chmod 600 " + path);
  }
  return {};
}

}  // namespace

Result<std::string> RandomSecret() {
  unsigned char bytes[kRandomBytes];
  if (!FillRandom(bytes)) return SystemError("random bytes", errno);
  std::string text;
  for (unsigned char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

Result<std::string> OwnSecretPath(const Environment& environment) {
  constexpr const char* kName = "/rankrun/secret";
  auto config = environment("XDG_CONFIG_HOME");
  if (config && config->starts_with('/')) return *config + kName;
  auto home = environment("HOME");
  if (!home) {
    const passwd* user = getpwuid(geteuid());
    if (user != nullptr && user->pw_dir != nullptr) home = user->pw_dir;
  }
  if (!home || !home->starts_with('/')) {
    return Error{ErrorCode::kInvalid, "this user has no home folder (HOME is not set)"};
  }
  return (*home == "/" ? "" : *home) + "/.config" + kName;
}

Result<std::string> ReadOwnSecret(const std::string& path) {
  Fd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return SystemError(path, errno);
  struct stat status;
  if (fstat(file.get(), &status) != 0) return SystemError(path, errno);
  if (auto ours = CheckOwner(path, status); !ours) return std::move(ours).error();
  std::string text(kMaxFileBytes, '\0');
  ssize_t size = read(file.get(), text.data(), text.size());
  if (size < 0) return SystemError(path, errno);
  text.resize(static_cast<size_t>(size));
  auto secret = SecretOf(std::move(text));
  if (!secret) return std::move(secret).error().In(path);
  return secret;
}

Result<std::string> ReadOrMakeOwnSecret(const std::string& path) {
  auto secret = ReadOwnSecret(path);
  if (secret || secret.error().code != ErrorCode::kNotFound) return secret;
  if (auto made = Make(path); !made) return std::move(made).error();
  return ReadOwnSecret(path);
}

Result<void> ReplaceOwnSecret(const std::string& path) {
  auto draft = MakeDraft(path);
  if (!draft) return std::move(draft).error();
  return draft->Finish();
}

Result<std::string> SecretOf(std::string text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (text.empty()) return Error{ErrorCode::kInvalid, "is empty, want a secret"};
  if (text.size() < kMinSecretBytes) {
    return Error{ErrorCode::kInvalid, "the secret has " + std::to_string(text.size()) +
                                          " bytes, want at least " +
                                          std::to_string(kMinSecretBytes)};
  }
  return text;
}

}  // namespace rankrun::launcher

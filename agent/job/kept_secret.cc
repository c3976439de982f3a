#include "agent/job/kept_secret.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/memory_file.h"

extern char** environ;

namespace rankrun::agent {
namespace {

// Offset of the bytes; the number of them stands before.
constexpr off_t kBegin = sizeof(uint64_t);

Result<void> WriteAt(int fd, const void* bytes, size_t size, off_t at) {
  const ssize_t count = pwrite(fd, bytes, size, at);
  if (count == static_cast<ssize_t>(size)) return {};
  return SystemError("keep the secret", count < 0 ? errno : ENOSPC);
}

}  // namespace

Result<KeptSecret> KeptSecret::Create() {
  auto memory = CreateMemoryFile("rankrun-secret");
  if (!memory) return std::move(memory).error();
  return KeptSecret(std::move(*memory));
}

Result<void> KeptSecret::Keep(std::string_view secret) const {
  const uint64_t size = secret.size();
  if (auto ok = WriteAt(memory_.get(), secret.data(), secret.size(), kBegin); !ok) return ok;
  return WriteAt(memory_.get(), &size, sizeof size, 0);
}

std::optional<std::string> KeptSecret::Read() const {
  uint64_t size = 0;
  struct stat status;
  if (pread(memory_.get(), &size, sizeof size, 0) != sizeof size) return std::nullopt;
  if (fstat(memory_.get(), &status) != 0) return std::nullopt;
  if (size == 0 || size > static_cast<uint64_t>(status.st_size - kBegin)) return std::nullopt;
  std::string secret(size, '\0');
  if (pread(memory_.get(), secret.data(), size, kBegin) != static_cast<ssize_t>(size)) {
    return std::nullopt;
  }
  return secret;
}

Result<void> TakeVariable(const char* name, const KeptSecret& secret) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return {};
  if (auto kept = secret.Keep(value); !kept) return kept;
  std::vector<char*> entries;
  const std::string begin = std::string(name) + "=";
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with(begin)) entries.push_back(*entry);
  }
  unsetenv(name);  // also removes the second of two entries
  for (char* entry : entries) explicit_bzero(entry, std::strlen(entry));
  return {};
}

}  // namespace rankrun::agent

#include "checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace {

struct Header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t hidden;
  uint64_t floats;  // in all parts together
  int64_t step;
};
static_assert(sizeof(Header) == 32, "no padding: the header is written as it lies in memory");

constexpr std::array<char, 8> kMagic{'T', 'R', 'A', 'I', 'N', 'L', 'M', '\n'};
constexpr uint32_t kVersion = 1;

[[noreturn]] void Fail(const std::string& what, const std::string& why) {
  throw std::runtime_error(what + ": " + why);
}
[[noreturn]] void FailErrno(const std::string& what) { Fail(what, std::strerror(errno)); }

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

void WriteAll(const File& file, const std::string& path, const void* data, size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t written = ::write(file.fd(), next, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) FailErrno("write " + path);
    next += written;
    bytes -= static_cast<size_t>(written);
  }
}

// Reads up to `bytes`; returns how many there were.
size_t ReadUpTo(const File& file, const std::string& path, void* data, size_t bytes) {
  auto* next = static_cast<char*>(data);
  size_t done = 0;
  while (done < bytes) {
    ssize_t got = ::read(file.fd(), next + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) FailErrno("read " + path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

// A rename reaches the disk only when the folder is synced.
void SyncFolderOf(const std::string& path) {
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  File handle(folder, O_RDONLY | O_DIRECTORY);
  if (handle.fd() < 0 || ::fsync(handle.fd()) != 0) FailErrno("sync " + folder);
}

uint64_t Floats(const Checkpoint& state) {
  uint64_t floats = 0;
  for (const auto& part : state.parts) floats += part.size();
  return floats;
}

void Check(const std::string& what, const Header& header, const Checkpoint& expected) {
  if (header.magic != kMagic) Fail(what, "not a checkpoint of train_lm");
  if (header.version != kVersion) {
    Fail(what,
         "format version " + std::to_string(header.version) + ", want " + std::to_string(kVersion));
  }
  if (header.hidden != static_cast<uint32_t>(expected.hidden) ||
      header.floats != Floats(expected) || header.step < 0) {
    Fail(what, "made with --hidden " + std::to_string(header.hidden) + " (" +
                   std::to_string(header.floats) + " numbers), want --hidden " +
                   std::to_string(expected.hidden) + " (" + std::to_string(Floats(expected)) + ")");
  }
}

}  // namespace

void SaveCheckpoint(const std::string& file, const Checkpoint& state) {
  std::string temporary = file + ".tmp";
  Header header{.magic = kMagic,
                .version = kVersion,
                .hidden = static_cast<uint32_t>(state.hidden),
                .floats = Floats(state),
                .step = state.step};
  {
    File out(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (out.fd() < 0) FailErrno("create " + temporary);
    WriteAll(out, temporary, &header, sizeof header);
    for (const auto& part : state.parts) WriteAll(out, temporary, part.data(), part.size_bytes());
    if (::fsync(out.fd()) != 0) FailErrno("sync " + temporary);
  }
  if (::rename(temporary.c_str(), file.c_str()) != 0) FailErrno("rename " + temporary);
  SyncFolderOf(file);
}

bool LoadCheckpoint(const std::string& file, Checkpoint& state) {
  std::string what = "resume from " + file;
  File in(file, O_RDONLY);
  if (in.fd() < 0 && errno == ENOENT) return false;
  if (in.fd() < 0) FailErrno(what);
  Header header{};
  if (ReadUpTo(in, file, &header, sizeof header) < sizeof header) Fail(what, "file is too short");
  Check(what, header, state);
  for (const auto& part : state.parts) {
    if (ReadUpTo(in, file, part.data(), part.size_bytes()) < part.size_bytes()) {
      Fail(what, "file is truncated");
    }
  }
  char beyond = 0;
  if (ReadUpTo(in, file, &beyond, 1) != 0) Fail(what, "file is longer than its header says");
  state.step = header.step;
  return true;
}

#include "agent/health/awaited_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/health/proc_tables.h"
#include "agent/health/process_memory.h"
#include "agent/process/descendants.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxPathBytes = 300;
// One look at several workers reads a table once.
constexpr Duration kTableAge = std::chrono::milliseconds(50);
// A pass over the descriptors of all processes takes milliseconds.
constexpr Duration kOpenFilesAge = std::chrono::seconds(30);

// Returns the target of a link in /proc, without touching the file that it names.
std::string LinkOf(const std::string& link) {
  std::array<char, 4096> path;
  const ssize_t size = readlink(link.c_str(), path.data(), path.size());
  return std::string(path.data(), size > 0 ? static_cast<size_t>(size) : 0);
}

std::string FolderOf(pid_t pid) { return "/proc/" + std::to_string(pid) + "/"; }

void ForEachEntry(const std::string& folder, const std::function<void(const char*)>& visit) {
  std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
  while (entries != nullptr) {
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) return;
    if (entry->d_name[0] != '.') visit(entry->d_name);
  }
}

// Returns the absolute path that a call names; empty if it cannot be known.
std::string PathOf(pid_t pid, const WaitingCall& call) {
  if (call.path == 0) return "";
  std::string path = MemoryOf(pid, call.path, kMaxPathBytes + 1);
  path.resize(std::min(path.find('\0'), path.size()));
  if (path.empty() || path[0] == '/') return path;
  const std::string folder =
      LinkOf(FolderOf(pid) +
             (call.directory == AT_FDCWD ? "cwd" : "fd/" + std::to_string(call.directory)));
  return folder.empty() ? path : folder + (folder.ends_with('/') ? "" : "/") + path;
}

// Returns the number of a line "mnt_id:\t27" of fdinfo, in a base; -1 if there is none.
long FdinfoNumber(const std::string& fdinfo, const std::string& name, int base) {
  const size_t at = fdinfo.find(name + ":");
  return at == std::string::npos
             ? -1
             : std::strtol(fdinfo.c_str() + at + name.size() + 1, nullptr, base);
}

std::string FdinfoOf(pid_t pid, int descriptor) {
  return ReadOfProcess(pid, "fdinfo/" + std::to_string(descriptor));
}

std::string ServerOf(pid_t pid, const WaitingCall& call, const std::string& path) {
  if (!path.starts_with('/')) return "";
  const std::string table = ReadOfProcess(pid, "mountinfo");
  auto mount =
      call.descriptor >= 0
          ? MountWithId(
                table, static_cast<int>(FdinfoNumber(FdinfoOf(pid, call.descriptor), "mnt_id", 10)))
          : MountOfPath(table, path);
  return mount ? OneLine(ServerInWords(*mount), kMaxPathBytes) : "";
}

bool IsTerminal(const std::string& name) {
  return name.starts_with("/dev/pts/") || name.starts_with("/dev/tty") || name == "/dev/console";
}

bool IsInPipe(const std::string& wait_channel) {
  return wait_channel.find("pipe_") != std::string::npos;
}

// An open of a FIFO waits in one of these.
bool WaitsForPartner(const std::string& wait_channel) {
  return wait_channel == "wait_for_partner" || wait_channel == "fifo_open";
}

// Returns the details of a named file that is no pipe.
std::string KindOf(pid_t pid, const WaitingCall& call, const AwaitedFile& file) {
  if (IsTerminal(file.name)) return "a terminal";
  return ServerOf(pid, call, file.name);
}

std::string Joined(const std::string& one, const std::string& other) {
  return one + (one.empty() || other.empty() ? "" : ", ") + other;
}

}  // namespace

std::string ProcessInWords(pid_t pid) {
  std::string name = ReadOfProcess(pid, "comm");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return "pid " + std::to_string(pid) + (name.empty() ? "" : " (" + OneLine(name, 64) + ")");
}

AwaitedFile AwaitedFiles::Find(pid_t pid, const WaitingCall& call,
                               const std::string& wait_channel) {
  std::string name = PathOf(pid, call);
  if (call.descriptor >= 0) name = LinkOf(FolderOf(pid) + "fd/" + std::to_string(call.descriptor));
  AwaitedFile file{.name = OneLine(name, kMaxPathBytes)};
  if (name.starts_with("socket:[")) {
    file.detail = Connection(name);
  } else if (call.waits_for_lock) {
    file.detail = Joined(Lock(pid), ServerOf(pid, call, name));
  } else if (call.path != 0 && WaitsForPartner(wait_channel)) {
    const bool writes = (call.open_flags & O_ACCMODE) == O_WRONLY;
    file.detail =
        std::string("a FIFO that no process has open for ") + (writes ? "reading" : "writing");
  } else if (call.descriptor >= 0 && name.starts_with("pipe:[")) {
    file.detail = OtherEnds(pid, name, call.name.find("read") != std::string::npos);
  } else if (call.descriptor >= 0 && name.starts_with('/') && IsInPipe(wait_channel)) {
    file.detail =
        Joined("a FIFO", OtherEnds(pid, name, call.name.find("read") != std::string::npos));
  } else {
    file.detail = KindOf(pid, call, file);
  }
  return file;
}

AwaitedFiles::OpenFiles AwaitedFiles::ReadOpenFiles() {
  OpenFiles files;
  ForEachEntry("/proc", [&](const char* entry) {
    const pid_t pid = std::atoi(entry);
    if (pid <= 0) return;
    const std::string folder = FolderOf(pid) + "fd";
    if (access(folder.c_str(), R_OK | X_OK) != 0 && errno == EACCES) files.is_complete = false;
    ForEachEntry(folder, [&](const char* number) {
      std::string name = LinkOf(folder + "/" + number);
      if (name.starts_with("pipe:[") || name.starts_with('/')) {
        files.by_name.emplace(std::move(name), Descriptor{pid, std::atoi(number)});
      }
    });
  });
  return files;
}

// Returns the processes that have the other end of a pipe or a FIFO open,.
std::set<pid_t> AwaitedFiles::EndsIn(const OpenFiles& files, pid_t pid, const std::string& name,
                                     int own_mode) {
  std::set<pid_t> ends;
  const auto [begin, end] = files.by_name.equal_range(name);
  for (auto found = begin; found != end; ++found) {
    const Descriptor& descriptor = found->second;
    const long flags = FdinfoNumber(FdinfoOf(descriptor.pid, descriptor.number), "flags", 8);
    const bool is_other_end = flags >= 0 && (flags & O_ACCMODE) != own_mode;
    if (is_other_end && descriptor.pid != pid) ends.insert(descriptor.pid);
  }
  return ends;
}

// Returns "from pid 12 (cat)"; for a writer, "to pid 12 (cat)".
std::string AwaitedFiles::OtherEnds(pid_t pid, const std::string& name, bool reads) {
  constexpr size_t kMaxShown = 2;
  MutexLock lock(mutex_);
  const TimePoint now = std::chrono::steady_clock::now();
  const int own_mode = reads ? O_RDONLY : O_WRONLY;
  std::set<pid_t> ends;
  // A process may have opened it after the table was read.
  for (const Duration age : {kOpenFilesAge, kTableAge}) {
    if (!open_files_.value || now - open_files_.read > age) {
      open_files_ = {ReadOpenFiles(), now};
    }
    ends = EndsIn(*open_files_.value, pid, name, own_mode);
    if (!ends.empty()) break;
  }
  if (ends.empty()) {
    if (!open_files_.value->is_complete) return "";
    return std::string("which no other process has open for ") + (reads ? "writing" : "reading");
  }
  std::string text = reads ? "from " : "to ";
  size_t shown = 0;
  for (pid_t other : ends) {
    if (++shown > kMaxShown) break;
    text += (shown > 1 ? ", " : "") + ProcessInWords(other);
  }
  if (ends.size() > kMaxShown) text += " and " + std::to_string(ends.size() - kMaxShown) + " more";
  return text;
}

// Returns "to 10.0.0.1:29500".
std::string AwaitedFiles::Connection(const std::string& socket) {
  MutexLock lock(mutex_);
  const TimePoint now = std::chrono::steady_clock::now();
  if (!connections_.value || now - connections_.read > kTableAge) {
    auto all = ReadConnections(kConnected | kSynSent | kListening);
    connections_ = {std::move(all).value_or(ConnectionsByInode()), now};
  }
  const uint64_t inode =
      std::strtoull(socket.c_str() + std::string_view("socket:[").size(), nullptr, 10);
  const auto found = connections_.value->find(inode);
  if (found == connections_.value->end()) return "";
  const TcpConnection& connection = found->second;
  if (connection.state == kListening) return "at port " + std::to_string(connection.local.port);
  const std::string to = "to " + EndInWords(connection.remote);
  return connection.state == kSynSent ? to + ", which does not answer" : to;
}

// Returns "which pid 12 (python3) holds".
std::string AwaitedFiles::Lock(pid_t pid) {
  MutexLock lock(mutex_);
  const TimePoint now = std::chrono::steady_clock::now();
  if (!locks_.value || now - locks_.read > kTableAge) {
    locks_ = {ReadOfProcess(getpid(), "../locks"), now};
  }
  auto holder = LockHolder(*locks_.value, pid);
  return holder ? "which " + ProcessInWords(*holder) + " holds" : "";
}

}  // namespace rankrun::agent

#include "agent/inspect/socket_folder.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/parse_number.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxNameBytes = 40;  // of the job in a socket's name
constexpr int kBacklog = 16;
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

Result<void> CreateFolder(const std::string& path, uid_t user) {
  if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return SystemError("create " + path, errno);
  }
  return CheckSocketFolder(path, user);
}

// The socket gets its name once it listens: rankctl removes a socket that refuses it.
Result<InspectSocket> ListenAt(const std::string& path) {
  const std::string early = path + "~";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (early.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::kInvalid, path + " is too long for the path of a socket"};
  }
  std::memcpy(address.sun_path, early.c_str(), early.size() + 1);
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return SystemError("open a socket", errno);
  unlink(early.c_str());  // an agent that has died had the same pid
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.get(), kBacklog) != 0 || rename(early.c_str(), path.c_str()) != 0) {
    Error error = SystemError("listen at " + path, errno);
    unlink(early.c_str());
    return error;
  }
  return InspectSocket{std::move(fd), path};
}

std::string SharedFolder(uid_t user) { return "/tmp/rankrun-" + std::to_string(user); }

Result<InspectSocket> ListenInSpareFolder(const std::string& prefix, uid_t user,
                                          const std::string& name) {
  for (const std::string& folder : FindSpareFolders(prefix, user)) {
    if (auto listening = ListenAt(folder + "/" + name)) return listening;
  }
  std::string folder = prefix + "XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return SystemError("create " + folder, errno);
  return ListenAt(folder + "/" + name);
}

}  // namespace

std::vector<std::string> SocketFolders(const SocketVariables& variables, uid_t user) {
  if (!variables.socket_dir.empty()) return {variables.socket_dir};
  std::vector<std::string> folders;
  auto add = [&folders](std::string folder) {
    if (std::ranges::find(folders, folder) == folders.end()) folders.push_back(std::move(folder));
  };
  if (variables.runtime_dir.starts_with('/')) add(variables.runtime_dir + "/rankrun");
  add("/run/user/" + std::to_string(user) + "/rankrun");
  add(SharedFolder(user));
  return folders;
}

std::string SpareFolderPrefix(const SocketVariables& variables, uid_t user) {
  return variables.socket_dir.empty() ? SharedFolder(user) + "." : "";
}

std::vector<std::string> FindSpareFolders(const std::string& prefix, uid_t user) {
  std::vector<std::string> folders;
  if (prefix.empty()) return folders;
  std::error_code error;
  std::filesystem::directory_iterator entry(std::filesystem::path(prefix).parent_path(), error);
  for (std::filesystem::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path();
    if (path.starts_with(prefix) && CheckSocketFolder(path, user)) folders.push_back(path);
  }
  return folders;
}

std::string SocketName(std::string_view job_id, pid_t agent) {
  std::string name(job_id.substr(0, kMaxNameBytes));
  std::ranges::replace_if(
      name, [](char c) { return !IsPlain(c); }, '_');
  return name + "." + std::to_string(agent);
}

std::optional<pid_t> AgentOfSocket(std::string_view name) {
  size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  auto pid = ParseNumber<pid_t>(name.substr(dot + 1));
  return pid && *pid > 0 ? pid : std::nullopt;
}

Result<void> CheckSocketFolder(const std::string& path, uid_t user) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return SystemError(path, errno);
  if (!S_ISDIR(status.st_mode)) return Error{ErrorCode::kInvalid, path + " is not a folder"};
  if (status.st_uid != user) {
    return Error{ErrorCode::kInvalid, path + " belongs to user " + std::to_string(status.st_uid) +
                                          ", not to user " + std::to_string(user)};
  }
  if ((status.st_mode & kOthers) == 0) return {};
  return Error{ErrorCode::kInvalid,
               path + " is open to other users; rankrun uses it after chmod 700 " + path};
}

Result<InspectSocket> ListenForInspection(const SocketPlaces& places, uid_t user,
                                          const std::string& name) {
  Error error{ErrorCode::kNotFound, "no folder"};
  std::string warning;
  for (const std::string& folder : places.folders) {
    auto created = CreateFolder(folder, user);
    bool is_unsafe = !created && created.error().code == ErrorCode::kInvalid;
    if (is_unsafe && warning.empty()) warning = created.error().message;
    auto listening = created ? ListenAt(folder + "/" + name) : std::move(created).error();
    if (listening) {
      listening->warning = std::move(warning);
      return listening;
    }
    // A folder without its parent is no news: not every host has /run/user.
    bool is_worse =
        listening.error().code == ErrorCode::kInvalid || error.code == ErrorCode::kNotFound;
    if (is_worse) error = std::move(listening).error();
  }
  if (warning.empty() || places.spare_prefix.empty()) return error;
  auto listening = ListenInSpareFolder(places.spare_prefix, user, name);
  if (!listening) return error;
  listening->warning = std::move(warning);
  return listening;
}

}  // namespace rankrun::agent

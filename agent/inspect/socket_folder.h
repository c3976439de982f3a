#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rankrun::agent {

// Folders for the sockets through which `rankctl` asks the agents of one user.

// Variables with folders; empty if they are not set.
struct SocketVariables {
  std::string socket_dir = {};   // RANKRUN_SOCKET_DIR: the only folder
  std::string runtime_dir = {};  // XDG_RUNTIME_DIR
};
// Returns the folders that may have sockets of `user`, the preferred one first. A program
// without XDG_RUNTIME_DIR, such as a cron job, still finds the jobs of a login. Pure.
std::vector<std::string> SocketFolders(const SocketVariables& variables, uid_t user);

// Returns the beginning of the names of spare folders, "/tmp/rankrun-UID."; empty if a variable
// names the only folder. Another user may have taken the name of the folder in /tmp; a spare one
// has random characters at its end, and rankctl finds it by its owner. Pure.
std::string SpareFolderPrefix(const SocketVariables& variables, uid_t user);
// Returns the spare folders of `user` that are there and safe. Blocks as a file system does.
std::vector<std::string> FindSpareFolders(const std::string& prefix, uid_t user);

// Returns the file name of an agent's socket, "<job>.<pid>". Replaces other characters than
// letters, digits, "-" and "_", and cuts a long id, because a path has little room. Pure.
std::string SocketName(std::string_view job_id, pid_t agent);
// Returns the pid in such a name; nothing for other names. Pure.
std::optional<pid_t> AgentOfSocket(std::string_view name);

// Checks that a folder is one of `user`, that nobody else may enter.
// Errors: kNotFound if it does not exist, kInvalid if others may use it, kSystem.
Result<void> CheckSocketFolder(const std::string& path, uid_t user);

// A listening socket with its path.
struct InspectSocket {
  Fd fd;
  std::string path;
  std::string warning{};  // on a folder that is not safe and was passed over; empty: none
};

// Where an agent may have its socket.
struct SocketPlaces {
  std::vector<std::string> folders;
  std::string spare_prefix = {};  // empty: there are no spare folders
};

// Listens in the first of the folders that can be used, and creates that folder with mode 0700.
// If the last one is not safe, listens in a spare folder. May block as a file system does.
// Errors: kInvalid if a folder is not safe, kSystem; those of the last folder.
Result<InspectSocket> ListenForInspection(const SocketPlaces& places, uid_t user,
                                          const std::string& name);

}  // namespace rankrun::agent

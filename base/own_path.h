#pragma once

#include <sys/stat.h>

#include <string>

#include "base/fd.h"
#include "base/result.h"

// Paths of files and folders that a program writes for its user. A program may write into folders
// that other users may change, too, such as /tmp. There, a link or a file of another user must not
// redirect a write: these functions walk along a path step by step, and follow a link only
// if this user or root owns it. Above the last name, they also follow a link with the same owner as
// its folder, as Linux' fs.protected_symlinks does. They open folders once, so that a name
// cannot change its meaning between a check and its use.
// Thread: any.
namespace rankrun {

// A name in an open folder.
struct OwnPlace {
  Fd folder;
  std::string name;
  bool is_descriptor = false;  // a link in /proc to an open file, such as that of /dev/stdout
};

// Whether a link at the end of a path is followed.
enum class LastLink { kFollow, kKeep };

// Returns the place of a file that may be there or not.
// Errors: kInvalid for a link of another user; those of SystemError.
Result<OwnPlace> FindOwnPlace(const std::string& path, LastLink last);

// Makes a folder and its missing parents. Errors: as above.
Result<void> MakeOwnFolders(const std::string& path, mode_t mode);

// Checks that neither this folder nor the way to it belongs to another user.
// Errors: as above, and kInvalid for a folder of another user.
Result<void> CheckOwnFolder(const std::string& path);

// Whether `user` is that of this process or root. In a user namespace without root, files of root
// have the owner of all users that the namespace does not know.
bool IsOwnUserOrSystem(uid_t user);

// Whether a file or folder of `owner` counts as one of this user: it is the user's or root's, or a
// new file in `folder` gets the same owner, because a server of files shows all users as one.
bool IsOwn(uid_t owner, const Fd& folder);

// Returns `name` with random digits, for a new file beside it: "page.html.<16 digits>.tmp".
std::string DraftNameOf(const std::string& name);

}  // namespace rankrun

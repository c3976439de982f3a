#include "store/clients/file_presence.h"

#include <fcntl.h>

#include <cerrno>

#include "store/clients/file_lock.h"

namespace rankrun::store {
namespace {

struct flock ByteOf(int64_t user) {
  struct flock byte {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = kLockedBytes + user;
  byte.l_len = 1;
  return byte;
}

Result<Fd> Open(const std::string& path) {
  // O_NONBLOCK, because opening a FIFO could block.
  Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file) return file;
  if (errno == ENOENT) {
    return Error{ErrorCode::kPeerLost, "store file " + path + ": it was removed while in use"};
  }
  return SystemError("open store file " + path, errno);
}

}  // namespace

Result<FilePresence> FilePresence::Show(const std::string& path, int64_t user) {
  auto file = Open(path);
  if (!file) return std::move(file).error();
  struct flock byte = ByteOf(user);
  if (fcntl(file->get(), F_OFD_SETLK, &byte) == 0) return FilePresence(*std::move(file));
  if (errno == EAGAIN || errno == EACCES) {  // a user of that file has the number
    return Error{ErrorCode::kPeerLost, "store file " + path + ": it was replaced by another file"};
  }
  return SystemError("lock " + path, errno);
}

Result<bool> FilePresence::Lives(const std::string& path, int64_t user) {
  auto file = Open(path);
  if (!file) return std::move(file).error();
  struct flock byte = ByteOf(user);
  if (fcntl(file->get(), F_OFD_GETLK, &byte) != 0) return SystemError("lock " + path, errno);
  return byte.l_type != F_UNLCK;
}

}  // namespace rankrun::store

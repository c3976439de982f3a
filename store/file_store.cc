#include "store/file_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "store/describe.h"
#include "store/file_log.h"

namespace rankrun::store {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

Result<struct stat> Status(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return SystemError("look at the file", errno);
  return status;
}

// Fewer bytes than asked for only where the file ends.
Result<std::string> ReadAt(int fd, off_t offset, size_t size) {
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    ssize_t count = pread(fd, bytes.data() + done, size - done, offset + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("read", errno);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

// Writes all of `bytes` at the end of the file, which is `end`, or leaves the
// file as it was.
Result<void> WriteAtEnd(int fd, off_t end, std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t count =
        pwrite(fd, bytes.data() + done, bytes.size() - done, end + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      Error error = SystemError("write", count < 0 ? errno : ENOSPC);
      // If this fails, too, the record is torn and the next call cuts it off.
      if (ftruncate(fd, end) != 0) error.message += "; what was written is left to be cut off";
      return error;
    }
    done += static_cast<size_t>(count);
  }
  return {};
}

// Never follows what is no regular file into blocking (a FIFO) or effects (a
// device).
Result<Fd> OpenFile(const std::string& path, int more_flags) {
  Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | more_flags, 0600));
  if (!file) return SystemError("open", errno);
  auto status = Status(file.get());
  if (!status) return std::move(status).error();
  if (!S_ISREG(status->st_mode)) return Error{ErrorCode::kInvalid, "open: it is no regular file"};
  return file;
}

// The log in one file, and the table that it has led to so far.
class LogFile final : public TableSource {
 public:
  LogFile(std::string path, const FileStoreOptions& options)
      : TableSource(options.deaths), path_(std::move(path)), options_(options) {}

  // Once, before all else.
  Result<void> Open(const std::string& run_id);

  Result<void> Refresh(Session& session, Purpose purpose, TimePoint deadline) override;
  Result<void> Commit(Session& session, std::vector<Change> changes) override;
  Duration LongestSleep() const override { return 10ms; }
  milliseconds Patience() const override { return options_.lock_timeout; }

 private:
  Result<void> CheckHeader(const FileLock& file, const std::string& run_id);
  Result<Fd> OpenAgain() const;
  Result<bool> IsCurrent(Session& session, int fd);
  Result<void> LockAndReplay(Session& session, Fd file, TimePoint deadline);
  Result<void> Replay(int fd);
  Error Explain(Error error) const { return std::move(error).In("store file " + path_); }

  const std::string path_;
  const FileStoreOptions options_;
  // Of the file that Open() found. Kept open and never locked: no other file
  // can get this one's inode number meanwhile.
  Fd pin_;
  struct stat identity_ {};
  off_t end_ = 0;  // of what the table has; the end of a record. Guarded by mutex_
};

Result<void> LogFile::Open(const std::string& run_id) {
  auto pin = OpenFile(path_, O_CREAT);
  if (!pin) return Explain(std::move(pin).error());
  pin_ = std::move(*pin);
  auto status = Status(pin_.get());
  if (!status) return Explain(std::move(status).error());
  identity_ = *status;
  auto file = OpenAgain();
  if (!file) return Explain(std::move(file).error());
  const TimePoint deadline = DeadlineAfter(options_.lock_timeout);
  auto lock = FileLock::Acquire(std::move(*file), deadline, deaths_.News());
  if (!lock) return Explain(std::move(lock).error());
  if (auto fits = CheckHeader(*lock, run_id); !fits) return Explain(std::move(fits).error());
  std::lock_guard guard(mutex_);
  if (auto replayed = Replay(lock->fd()); !replayed) return Explain(std::move(replayed).error());
  return {};
}

// Writes the header if there is none. Sets end_.
Result<void> LogFile::CheckHeader(const FileLock& file, const std::string& run_id) {
  const std::string own = EncodeHeader(run_id);
  auto start = ReadAt(file.fd(), 0, EncodeHeader(std::string(kLongestRunIdBytes, ' ')).size());
  if (!start) return std::move(start).error();
  const Header found = DecodeHeader(*start);
  if (start->empty() || found.kind == HeaderKind::kTorn) {
    if (ftruncate(file.fd(), 0) != 0) return SystemError("cut off half a header", errno);
    if (auto written = WriteAtEnd(file.fd(), 0, own); !written) return written;
  } else if (found.kind == HeaderKind::kForeign) {
    return Error{ErrorCode::kInvalid,
                 "it is not empty and no store of this version; it was left as it is: choose "
                 "another path, or remove it if nobody needs it"};
  } else if (found.run_id != run_id) {
    return Error{ErrorCode::kInvalid,
                 "it belongs to run \"" + found.run_id + "\", not to this run, \"" + run_id +
                     "\": an earlier job has left it, or another one is using it; remove it if "
                     "that job is over, else choose another path"};
  }
  std::lock_guard guard(mutex_);
  end_ = static_cast<off_t>(own.size());
  return {};
}

Result<Fd> LogFile::OpenAgain() const {
  auto file = OpenFile(path_, 0);
  if (!file && file.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kPeerLost, "somebody has removed it while it was in use"};
  }
  if (!file) return file;
  auto status = Status(file->get());
  if (!status) return std::move(status).error();
  if (status->st_ino != identity_.st_ino || status->st_dev != identity_.st_dev) {
    return Error{ErrorCode::kPeerLost, "somebody has put another file in its place"};
  }
  return file;
}

Result<void> LogFile::Refresh(Session& session, Purpose purpose, TimePoint deadline) {
  if (session.lock.owns_lock()) session.lock.unlock();
  session.file.reset();
  // Opened each time: a lock then keeps out the other threads and the forked
  // children of this process, too, and a file that is gone is noticed.
  auto file = OpenAgain();
  if (!file) {
    session.lock = std::unique_lock(mutex_);
    return Explain(std::move(file).error());
  }
  if (purpose == Purpose::kRead) {
    auto current = IsCurrent(session, file->get());
    if (!current) return Explain(std::move(current).error());
    if (*current) return {};
    session.lock.unlock();
  }
  auto replayed = LockAndReplay(session, std::move(*file), deadline);
  if (!replayed) {
    session.file.reset();
    return Explain(std::move(replayed).error());
  }
  if (purpose == Purpose::kRead) session.file.reset();
  return {};
}

// Takes the mutex. A file that ends where the table does needs no lock of the
// file, so those who only read hold up nobody.
Result<bool> LogFile::IsCurrent(Session& session, int fd) {
  auto status = Status(fd);
  session.lock = std::unique_lock(mutex_);
  if (!status) return std::move(status).error();
  return status->st_size == end_;
}

// The lock of the file before the mutex, so that nobody waits for another
// process with the mutex held. Takes the mutex in any case.
Result<void> LogFile::LockAndReplay(Session& session, Fd file, TimePoint deadline) {
  auto lock = FileLock::Acquire(std::move(file), deadline, deaths_.News());
  session.lock = std::unique_lock(mutex_);
  if (!lock) return std::move(lock).error();
  session.file = std::move(*lock);
  return Replay(session.file->fd());
}

// With the file locked and the mutex held.
Result<void> LogFile::Replay(int fd) {
  auto status = Status(fd);
  if (!status) return std::move(status).error();
  if (status->st_size < end_) {
    return Error{ErrorCode::kProtocol, "it is damaged: it was longer before"};
  }
  if (status->st_size == end_) return {};
  auto bytes = ReadAt(fd, end_, static_cast<size_t>(status->st_size - end_));
  if (!bytes) return std::move(bytes).error();
  std::string_view rest = *bytes;
  while (!rest.empty()) {
    const size_t before = rest.size();
    auto change = DecodeRecord(rest);
    if (!change) {
      return std::move(change).error().In("it is damaged at byte " + std::to_string(end_));
    }
    if (!*change) break;
    table_.Apply(**change);
    end_ += static_cast<off_t>(before - rest.size());
  }
  // Nobody else is writing, so who began this record is dead.
  if (!rest.empty() && ftruncate(fd, end_) != 0) return SystemError("cut off half a record", errno);
  return {};
}

Result<void> LogFile::Commit(Session& session, std::vector<Change> changes) {
  std::string records;
  for (const Change& change : changes) {
    auto record = EncodeRecord(change);
    if (!record) return Explain(std::move(record).error());
    records += *record;
  }
  auto written = WriteAtEnd(session.file->fd(), end_, records);
  if (!written) return Explain(std::move(written).error());
  end_ += static_cast<off_t>(records.size());
  for (const Change& change : changes) table_.Apply(change);
  return {};
}

}  // namespace

Result<std::unique_ptr<FileStore>> FileStore::Open(const std::string& path,
                                                   const std::string& run_id,
                                                   const FileStoreOptions& options) {
  if (run_id.size() > kLongestRunIdBytes) {
    return Error{ErrorCode::kInvalid, "store file " + path + ": the run id is longer than " +
                                          std::to_string(kLongestRunIdBytes) + " bytes"};
  }
  auto file = std::make_shared<LogFile>(path, options);
  if (auto opened = file->Open(run_id); !opened) return std::move(opened).error();
  return std::unique_ptr<FileStore>(new FileStore(std::move(file)));
}

}  // namespace rankrun::store

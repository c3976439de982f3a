#include "store/clients/file_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/own_file.h"
#include "store/clients/describe.h"
#include "store/clients/file_log.h"

namespace rankrun::store {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

Result<struct stat> Status(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return SystemError("look at the file", errno);
  return status;
}

// Returns fewer bytes than `size` only at the end of the file.
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

// Writes all of `bytes` at `end`, the end of the file, or leaves the file
// unchanged.
Result<void> WriteAtEnd(int fd, off_t end, std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t count =
        pwrite(fd, bytes.data() + done, bytes.size() - done, end + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      Error error = SystemError("write", count < 0 ? errno : ENOSPC);
      // If this fails, too, the record is torn and the next call removes it.
      if (ftruncate(fd, end) != 0) error.message += "; the next call removes the incomplete record";
      return error;
    }
    done += static_cast<size_t>(count);
  }
  return {};
}

// O_NONBLOCK, because opening a FIFO could block.
constexpr int kOpenFlags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

Result<Fd> OnlyRegular(Fd file) {
  auto status = Status(file.get());
  if (!status) return std::move(status).error();
  if (!S_ISREG(status->st_mode))
    return Error{ErrorCode::kInvalid, "open: it is not a regular file"};
  return file;
}

// Log in a file, and the table that results from it.
class LogFile final : public TableSource {
 public:
  LogFile(std::string path, const FileStoreOptions& options)
      : TableSource(options.deaths), path_(std::move(path)), options_(options) {}

  // Must be called first, and once.
  Result<void> Open(const std::string& run_id);

  Result<void> Refresh(Session& session, Purpose purpose, TimePoint deadline) override
      REQUIRES(mutex_);
  Result<void> Commit(Session& session, std::vector<Change> changes) override REQUIRES(mutex_);
  Duration LongestSleep() const override { return 10ms; }
  milliseconds LockTimeout() const override { return options_.lock_timeout; }

 private:
  Result<void> CheckHeader(const FileLock& file, const std::string& run_id);
  Result<Fd> OpenAgain() const;
  Result<Fd> OpenWithoutMutex(Session& session) REQUIRES(mutex_);
  Result<FileLock> LockWithoutMutex(Fd file, TimePoint deadline) REQUIRES(mutex_);
  Result<bool> IsCurrent(int fd) REQUIRES(mutex_);
  Result<void> LockAndReplay(Session& session, Fd file, TimePoint deadline) REQUIRES(mutex_);
  Result<void> Replay(int fd) REQUIRES(mutex_);
  // As it was when this process opened the file.
  std::string Age() const { return DescribeAge(identity_, std::chrono::system_clock::now()); }
  Error Explain(Error error) const { return std::move(error).In("store file " + path_); }

  const std::string path_;
  const FileStoreOptions options_;
  // The file that Open() found. Kept open and never locked, so that no other
  // file can get its inode number.
  Fd pin_;
  struct stat identity_ {};
  off_t end_ GUARDED_BY(mutex_) = 0;  // end of the last record that the table contains
};

Result<void> LogFile::Open(const std::string& run_id) {
  auto opened = OpenOwnFile(path_, kOpenFlags | O_CREAT);
  if (!opened) {
    const Error& error = opened.error();  // names the file
    return Error{error.code, "store file " + error.message};
  }
  auto pin = OnlyRegular(std::move(*opened));
  if (!pin) return Explain(std::move(pin).error());
  pin_ = std::move(*pin);
  auto status = Status(pin_.get());
  if (!status) return Explain(std::move(status).error());
  identity_ = *status;
  auto file = OpenAgain();
  if (!file) return Explain(std::move(file).error());
  TimePoint deadline = DeadlineAfter(options_.lock_timeout);
  auto lock = FileLock::Acquire(std::move(*file), deadline, deaths_.OnlyNews());
  if (!lock) return Explain(std::move(lock).error());
  if (auto fits = CheckHeader(*lock, run_id); !fits) return Explain(std::move(fits).error());
  MutexLock guard(mutex_);
  if (auto replayed = Replay(lock->fd()); !replayed) return Explain(std::move(replayed).error());
  return {};
}

// Writes the header if there is none. Sets end_.
Result<void> LogFile::CheckHeader(const FileLock& file, const std::string& run_id) {
  std::string own = EncodeHeader(run_id);
  auto start = ReadAt(file.fd(), 0, EncodeHeader(std::string(kMaxRunIdBytes, ' ')).size());
  if (!start) return std::move(start).error();
  Header found = DecodeHeader(*start);
  if (start->empty() || found.kind == HeaderKind::kTorn) {
    if (ftruncate(file.fd(), 0) != 0) return SystemError("remove an incomplete header", errno);
    if (auto written = WriteAtEnd(file.fd(), 0, own); !written) return written;
  } else if (found.kind == HeaderKind::kForeign) {
    return Error{ErrorCode::kInvalid,
                 "it is not empty and not a store of this version, so it was left unchanged; " +
                     Age() + ": choose another path, or remove it if it is not needed"};
  } else if (found.run_id != run_id) {
    return Error{ErrorCode::kInvalid,
                 "it belongs to run \"" + found.run_id + "\", not to this run, \"" + run_id +
                     "\": an earlier job left it, or another job is using it; " + Age() +
                     "; remove it if that job is over, else choose another path"};
  }
  MutexLock lock(mutex_);
  end_ = static_cast<off_t>(own.size());
  return {};
}

Result<Fd> LogFile::OpenAgain() const {
  Fd opened(open(path_.c_str(), kOpenFlags));
  if (!opened && errno == ENOENT) {
    return Error{ErrorCode::kPeerLost, "it was removed while in use"};
  }
  if (!opened) return SystemError("open", errno);
  auto file = OnlyRegular(std::move(opened));
  if (!file) return file;
  auto status = Status(file->get());
  if (!status) return std::move(status).error();
  if (status->st_ino != identity_.st_ino || status->st_dev != identity_.st_dev) {
    return Error{ErrorCode::kPeerLost, "it was replaced by another file"};
  }
  return file;
}

Result<void> LogFile::Refresh(Session& session, Purpose purpose, TimePoint deadline) {
  auto file = OpenWithoutMutex(session);
  if (!file) return Explain(std::move(file).error());
  if (purpose == Purpose::kRead) {
    auto current = IsCurrent(file->get());
    if (!current) return Explain(std::move(current).error());
    if (*current) return {};
  }
  auto replayed = LockAndReplay(session, std::move(*file), deadline);
  if (!replayed) {
    session.file.reset();
    return Explain(std::move(replayed).error());
  }
  if (purpose == Purpose::kRead) session.file.reset();
  return {};
}

// Releases both locks and opens the file. Opening it for each call also
// excludes other threads and forked children of this process, and detects that
// the file is gone.
Result<Fd> LogFile::OpenWithoutMutex(Session& session) {
  MutexUnlock unlock(mutex_);
  session.file.reset();
  return OpenAgain();
}

// Takes the lock of the file before the mutex, so that no thread waits for
// another process with the mutex held.
Result<FileLock> LogFile::LockWithoutMutex(Fd file, TimePoint deadline) {
  MutexUnlock unlock(mutex_);
  return FileLock::Acquire(std::move(file), deadline, deaths_.OnlyNews());
}

// Returns whether the file ends where the table does. A reader then needs no
// lock of the file, so readers do not block each other.
Result<bool> LogFile::IsCurrent(int fd) {
  auto status = Status(fd);
  if (!status) return std::move(status).error();
  return status->st_size == end_;
}

Result<void> LogFile::LockAndReplay(Session& session, Fd file, TimePoint deadline) {
  auto lock = LockWithoutMutex(std::move(file), deadline);
  if (!lock) return std::move(lock).error();
  session.file = std::move(*lock);
  return Replay(session.file->fd());
}

// Requires the file lock.
Result<void> LogFile::Replay(int fd) {
  auto status = Status(fd);
  if (!status) return std::move(status).error();
  if (status->st_size < end_) {
    return Error{ErrorCode::kProtocol, "it is damaged: it has become shorter"};
  }
  if (status->st_size == end_) return {};
  auto bytes = ReadAt(fd, end_, static_cast<size_t>(status->st_size - end_));
  if (!bytes) return std::move(bytes).error();
  std::string_view rest = *bytes;
  while (!rest.empty()) {
    size_t before = rest.size();
    auto change = DecodeRecord(rest);
    if (!change) {
      return std::move(change).error().In("it is damaged at byte " + std::to_string(end_));
    }
    if (!*change) break;
    table_.Apply(**change);
    end_ += static_cast<off_t>(before - rest.size());
  }
  // The file is locked, so the writer of this incomplete record is dead.
  if (!rest.empty() && ftruncate(fd, end_) != 0)
    return SystemError("remove an incomplete record", errno);
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
  if (run_id.size() > kMaxRunIdBytes) {
    return Error{ErrorCode::kInvalid, "store file " + path + ": the run id is longer than " +
                                          std::to_string(kMaxRunIdBytes) + " bytes"};
  }
  auto file = std::make_shared<LogFile>(path, options);
  if (auto opened = file->Open(run_id); !opened) return std::move(opened).error();
  return std::unique_ptr<FileStore>(new FileStore(std::move(file)));
}

}  // namespace rankrun::store

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "store/clients/table_store.h"

namespace rankrun::store {

struct FileStoreOptions {
  // Longest wait for the file lock. Other processes hold it for microseconds
  // unless one is stopped meanwhile. A call with a time-out waits for the lock
  // until that time-out, or for a second if that is longer.
  std::chrono::milliseconds lock_timeout{60'000};
  // Ends waits early. Waits for the file lock end only for a death that is
  // reported during the wait.
  DeathWatch deaths = {};
};

// A store in a file that all processes of a job can open, without a server. The
// file is a log of changes under a lock. Each store replays new changes and
// keeps keys and values in memory. The file only grows: it is meant for a
// rendezvous, not for data.
//
// A process may die at any point, also during a write. The kernel then releases
// its lock, and the next call in any process removes the incomplete record at
// the end. A change that cannot be written completely (disk full) is rolled
// back. The file is never synced to disk: it survives processes, not a power
// failure.
//
// The stores do not remove the file; the owner of its path does. The file
// carries the run id of its creator. A job that finds the file of an earlier
// job fails with that reason instead of meeting dead ranks. Attempts of one run
// that need separate keys need separate prefixes or run ids.
//
// On NFS it works if the mount supports locks (not `nolock`). Attribute caching
// delays waits there. A server that loses its locks in a restart may admit two
// writers. Prefer a store server across nodes.
//
// Errors of all calls, besides those of TableStore: kTimeout, the lock is held;
// kPeerLost, the file was removed or replaced; kProtocol, the file is damaged;
// kSystem, it cannot be read or written. After each of them nothing has
// changed, and a later call may succeed.
// Thread: any; a waiting call does not block others.
// Lifetime: also works in a forked child if no other thread was in a call at
// the fork.
// Source: torch.distributed.FileStore; the format is our own (file_log.h).
class FileStore final : public TableStore {
 public:
  // Opens the file at `path`. Creates it (mode 0600) if it is missing, and
  // initialises it if it is empty. The folder must exist. `run_id` identifies
  // the file's owner (TORCHELASTIC_RUN_ID, for example), at most 4096 bytes.
  // Errors, with the file left unchanged: kInvalid, it belongs to another run
  // or is not a store; kNotFound, kSystem.
  static Result<std::unique_ptr<FileStore>> Open(const std::string& path, const std::string& run_id,
                                                 const FileStoreOptions& options = {});

 private:
  using TableStore::TableStore;
};

}  // namespace rankrun::store

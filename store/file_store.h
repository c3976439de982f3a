#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "store/table_store.h"

namespace rankrun::store {

struct FileStoreOptions {
  // How long a call may wait while another process has the file locked. It has
  // it for microseconds, unless somebody has stopped it just then. A call with
  // a time-out of its own waits no longer than that, but up to a second.
  std::chrono::milliseconds lock_timeout{60'000};
  // What ends waits early; those for the lock only if it is told meanwhile.
  DeathWatch deaths = {};
};

// A store in a file that all processes of a job can open, without a server.
// The file is a log of changes under a lock; each store reads what is new in it
// and keeps keys and values in memory. It only grows: it is meant for a
// rendezvous, not for data.
//
// A process may die at any point, in the middle of a write too: half a record
// at the end is cut off by the next call that finds it, in any process, and the
// kernel takes back the lock. A change that cannot be written as a whole (disk
// full) is taken back. Nothing is synced to the disk: the file survives
// processes, not a power failure.
//
// The file stays when the stores are gone; who made up its path removes it. A
// job that finds the file of an earlier one is told so instead of meeting dead
// ranks in it: the file carries the run id of who has made it. Attempts of one
// run that are to have separate keys need separate prefixes or run ids.
//
// On NFS it works if the mount has locks (not `nolock`), with a delay by
// attribute caching for those who wait; a server that loses its locks in a
// restart may let two writers in. Prefer a store server across nodes.
//
// Errors of all calls, besides those of TableStore: kTimeout, the lock is held;
// kPeerLost, the file was removed or replaced; kProtocol, the file is damaged;
// kSystem, it cannot be read or written. After each of them nothing has changed,
// and a later call may succeed.
// Thread: any; a call that waits holds up nobody.
// Lifetime: works in a forked child, too, if no other thread was in a call at
// the fork.
// Source: torch.distributed.FileStore; the format is our own (file_log.h).
class FileStore final : public TableStore {
 public:
  // Opens the file at `path`; makes it (mode 0600) if there is none, or if it
  // is empty. The folder must exist. `run_id` says whose file it is
  // (TORCHELASTIC_RUN_ID, say); 4096 bytes at most.
  // Errors, with the file left unchanged: kInvalid, it belongs to another run,
  // or is no store; kNotFound, kSystem.
  static Result<std::unique_ptr<FileStore>> Open(const std::string& path, const std::string& run_id,
                                                 const FileStoreOptions& options = {});

 private:
  using TableStore::TableStore;
};

}  // namespace rankrun::store

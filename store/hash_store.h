#pragma once

#include "store/table_store.h"

namespace rankrun::store {

// A store within one process: for threads as ranks, for tests, for a job of one
// rank. Starts empty. Not reachable from other processes.
// Thread: any; a call that waits holds up nobody.
// Lifetime: its data lives as long as it or a clone of it.
// Source: torch.distributed.HashStore; unlike there, every way in which a key
// comes into existence wakes those who wait for it.
class HashStore final : public TableStore {
 public:
  explicit HashStore(const DeathWatch& deaths = {});
};

}  // namespace rankrun::store

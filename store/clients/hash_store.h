#pragma once

#include "store/clients/table_store.h"

namespace rankrun::store {

// A store within one process: for threads as ranks, for tests, for a job of one
// rank. Starts empty. Other processes cannot reach it.
// Thread: any; a waiting call does not block others.
// Lifetime: its data lives as long as it or a clone of it.
// Source: torch.distributed.HashStore; unlike there, every operation that
// creates a key wakes the waits for it.
class HashStore final : public TableStore {
 public:
  explicit HashStore(const DeathWatch& deaths = {});
};

}  // namespace rankrun::store

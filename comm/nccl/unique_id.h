#pragma once

#include <nccl.h>

#include <chrono>
#include <string>

#include "base/result.h"
#include "store/store.h"

// NCCL's id of a communicator on its way between ranks: a value of the store, which is
// the id or, if it is not of the size of one, the reason why there is none.
namespace rankrun::comm::nccl {

// Time-out for connecting to the store and for each reply.
inline constexpr std::chrono::milliseconds kStorePatience{5000};

// Makes an id for the ranks that read `key`. Errors: kSystem, those of the store.
Result<ncclUniqueId> PublishId(store::Store& store, const std::string& key);

// Reads the value that the global rank `from` has published. Error: kSystem, its reason.
Result<ncclUniqueId> IdIn(const std::string& value, int from);

}  // namespace rankrun::comm::nccl

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <rankrun/c/types.h>
#include <rankrun/store_base.h>

#include "store/store.h"

// The store is shared with the prefix stores on top of it, and with Init.
struct rankrun_store {
  std::shared_ptr<rankrun::Store> store;
};

namespace rankrun::comm {

// Returns the public form of `below`, which must outlive it. Its keys get the
// prefix.
std::shared_ptr<rankrun::Store> StoreOver(store::Store& below, const std::string& prefix,
                                          std::chrono::milliseconds timeout);

}  // namespace rankrun::comm

#pragma once

#include <memory>
#include <optional>

#include "comm/core/home_process.h"
#include "comm/world/rendezvous.h"
#include "store/store.h"

namespace rankrun::comm {

// Where the ranks of a world that could not be made have met, until the next Init. Ranks that
// are late read the reason there.
struct RefusedWorld {
  HomeProcess home = {};
  std::shared_ptr<store::HostedServer> server = {};  // if this rank serves the store
  std::optional<MeetingFile> file = {};
  std::unique_ptr<store::Store> store = {};  // in `file`
};

}  // namespace rankrun::comm

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <rankrun/process_group.h>
#include <rankrun/tensor.h>

#include "base/result.h"
#include "store/store.h"

namespace rankrun::comm {

// What every operation is told besides its data.
struct Call {
  uint32_t tag;                       // messages of calls with different tags never meet
  std::chrono::milliseconds timeout;  // for each message; at least 1 ms
};

// Moves data between the ranks of one process group. Arguments have been
// checked: counts are not 0, `source` is in range.
// Errors of all: kTimeout, kPeerLost (the message names the rank), kSystem.
// After an error the backend is destroyed; nothing else is called.
// Thread: one at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual Result<void> AllReduce(const Tensor& tensor, ReduceOp op, const Call& call) = 0;
  virtual Result<void> Broadcast(const Tensor& tensor, int source, const Call& call) = 0;
  virtual Result<void> Barrier(const Call& call) = 0;
};

struct BackendConfig {
  int global_rank;
  int world_size;
  store::Store& store;                // outlives the backend
  std::string key_prefix;             // of all keys that the backend sets
  std::string network_interface;      // empty: `host` says where to listen
  std::string host;                   // this rank's address for the others
  std::chrono::milliseconds timeout;  // for connecting to the others
};

// What librankrun_<name>.so exports. The library and its plug-ins are built
// together: the number is there to refuse one left over from another version.
inline constexpr uint32_t kBackendAbiVersion = 1;
inline constexpr char kBackendPluginSymbol[] = "rankrun_backend_plugin";

struct BackendPlugin {
  uint32_t abi_version;
  // Connects to all other ranks; all of them are in Create as well.
  // Errors: as Backend's, and kProtocol for an error of the store.
  Result<std::unique_ptr<Backend>> (*create)(const BackendConfig& config);
};
using BackendPluginFunction = const BackendPlugin*();

}  // namespace rankrun::comm

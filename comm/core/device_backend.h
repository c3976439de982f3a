#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rankrun/backend_options.h>

#include "base/clock.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/core/backend.h"
#include "comm/core/operation.h"
#include "store/store.h"

namespace rankrun::comm {

// Collective or message on memory of one device. Blocks are as for Backend; AllReduce,
// Reduce and Broadcast have one output, and for the first two one input, which
// may be the output. Send has one input, Recv one output.
struct DeviceCall {
  Operation operation = {};  // with the program's operator
  double factor = 1;         // of ReduceOp::kPremulSum
  std::vector<Block> outputs = {};
  std::vector<ConstBlock> inputs = {};
  int device = 0;
  void* stream = nullptr;               // of the device, in whose order the call runs
  std::chrono::milliseconds timeout{};  // for connecting, and for other ranks to connect

  Collective data() const {
    return {.kind = operation.kind, .root = operation.root, .outputs = outputs, .inputs = inputs};
  }
};

// Collective or message that a device carries out.
// Thread: any.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;

  // Returns whether the device is done with it. Errors: kSystem, kCancelled after
  // Abort of the backend.
  virtual Result<bool> Test() = 0;
  // Lets later work in `stream` wait for this work. Does not wait itself.
  virtual Result<void> WaitIn(void* stream) = 0;
};

// Message on its way to the device.
// Thread: any for DeviceWork's functions, after Enqueue has returned true.
class DeviceMessage : public DeviceWork {
 public:
  // Advances the connection to the other rank, and the messages before this one.
  // Returns whether the device has this message. Does not wait for other ranks.
  // Errors: kSystem, kCancelled after Abort of the backend.
  virtual Result<bool> Enqueue() = 0;
};

// Part of a group that becomes a group of its own.
struct DevicePart {
  static constexpr int kNoColor = -1;  // of a rank that is in no part

  int color;              // number of the part, equal on its ranks
  int rank;               // of this process in the part
  int world_size;         // of the part
  std::string name = {};  // of the new group, for messages
  NcclOptions options = {};
  // Returns why a wait for other ranks must end, if it must.
  std::function<std::optional<Error>()> find_failure = [] { return std::nullopt; };
};

// Transport of data between memory of devices, for one process group that also has
// a Backend for CPU memory. Ranks are group ranks. The ranks compare their calls by
// that Backend, at the same time; calls that do not match end by Abort.
// Thread: one for Enqueue, Split and Register, one for Start and the Enqueue of messages; Abort
// any.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  // Returns why no rank can carry out such a call: kInvalid, "NCCL does not reduce ...".
  virtual Result<void> Check(const DeviceCall& call) const = 0;
  // Enqueues the call. Waits for other ranks only to connect to them, at the first call
  // of a kind. Errors: kTimeout, kCancelled (with the death message, or after Abort),
  // kSystem, kInvalid for a device that this rank cannot use; then only Abort may
  // follow.
  virtual Result<std::shared_ptr<DeviceWork>> Enqueue(const DeviceCall& call) = 0;
  // Starts a message to or from the rank `operation.root`, another one. Messages from
  // one rank to another are matched in the order in which each rank starts them,
  // whatever their tags. Does not wait for other ranks. Errors: kSystem, kInvalid.
  virtual Result<std::shared_ptr<DeviceMessage>> Start(const DeviceCall& call) = 0;
  // Connects the ranks of each part by means of this group, if it is connected: all of its
  // ranks call it between the same calls of Enqueue. Returns DeviceBackendConfig::connection
  // of the new group; null: it connects by itself, or this rank is in no part.
  // Errors: as Enqueue.
  virtual Result<std::shared_ptr<void>> Split(const DevicePart& part, TimePoint deadline) {
    static_cast<void>(part);
    static_cast<void>(deadline);
    return std::shared_ptr<void>();
  }
  // Makes calls on this memory faster, until the result is gone. Waits for no other rank.
  // Errors: kInvalid, the backend cannot do it, or not yet; kSystem.
  virtual Result<std::shared_ptr<void>> Register(Block memory, int device) {
    static_cast<void>(memory);
    static_cast<void>(device);
    return Error{ErrorCode::kInvalid, "the backend registers no memory: want nccl"};
  }
  // Ends all work of this group on this rank, for good.
  virtual void Abort() = 0;
};

struct DeviceBackendConfig {
  std::vector<int> global_ranks;  // of the members, by group rank; for messages
  int group_rank;
  store::Store& store;     // outlives the backend
  std::string key_prefix;  // of all keys that the backend sets
  std::string name;        // of the group, for messages
  NcclOptions options = {};
  DeathWatch deaths = {};
  std::shared_ptr<void> connection = {};  // from Split of a backend of the same kind

  int world_size() const { return static_cast<int>(global_ranks.size()); }
};

}  // namespace rankrun::comm

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/death_watch.h"
#include "base/result.h"
#include "comm/operation.h"
#include "comm/reduction.h"
#include "store/store.h"

namespace rankrun::comm {

struct Block {
  std::byte* data;
  std::size_t bytes;
};
struct ConstBlock {
  const std::byte* data;
  std::size_t bytes;
};

// What every collective is told besides its data.
struct Call {
  const Operation& operation;
  std::chrono::milliseconds timeout;  // at least 1 ms
  uint64_t fingerprint = Fingerprint(operation);
};

// Which messages meet.
struct Envelope {
  uint64_t tag;  // the user's number, or one of kObjectTags
  DType dtype;
};

// A message that has come, for which nobody has asked.
struct Unasked {
  int source;
  uint64_t tag;
};

// A message under way.
// Thread: one at a time.
class Transfer {
 public:
  // Only after it is over, or after Abort.
  virtual ~Transfer() = default;

  // Whether it is over, well or badly; moves it on if it can be. Never waits.
  virtual bool Test() = 0;
  // Waits until it is over, at most `timeout`. Error kTimeout: it goes on; others
  // have ended it: kInvalid if sizes or dtypes differ (both sides get it), and as Backend's.
  virtual Result<void> Wait(std::chrono::milliseconds timeout) = 0;
  virtual int source() const = 0;  // group rank of the sender, once over; of receives
  // Of a receive that is not over: one that it would take if it had its tag.
  virtual std::optional<Unasked> FirstUnasked() { return std::nullopt; }
};

// Moves data between the ranks of one process group; ranks here are group
// ranks. Arguments have been checked, as far as one rank can: `outputs` and
// `inputs` have one block per rank, roots are in range; blocks may be empty.
// Complex elements are pairs of reals here, booleans are bytes.
//
// Errors of all: kTimeout, kPeerLost (the message names the rank), kCancelled
// (the death word), kMismatch (the ranks' calls do not fit together: the message
// says what every rank called), kInvalid (another rank has refused its call),
// kSystem, kExhausted (no memory for it). After an error other than a refusal only
// Abort is called.
// Thread: collectives one at a time; beside them, messages one at a time, from
// another thread at most.
class Backend {
 public:
  virtual ~Backend() = default;

  // `count` elements, in place.
  virtual Result<void> AllReduce(std::byte* data, std::size_t count, const Reduction& reduction,
                                 const Call& call) = 0;
  // `output` is read on no rank and written at the root only; it may be `input`.
  virtual Result<void> Reduce(std::byte* output, const std::byte* input, std::size_t count,
                              const Reduction& reduction, const Call& call) = 0;
  virtual Result<void> Broadcast(Block data, const Call& call) = 0;
  virtual Result<void> AllGather(std::span<const Block> outputs, ConstBlock input,
                                 const Call& call) = 0;
  // `outputs` is empty but at the root.
  virtual Result<void> Gather(std::span<const Block> outputs, ConstBlock input,
                              const Call& call) = 0;
  // `inputs` is empty but at the root.
  virtual Result<void> Scatter(Block output, std::span<const ConstBlock> inputs,
                               const Call& call) = 0;
  virtual Result<void> ReduceScatter(Block output, std::span<const ConstBlock> inputs,
                                     const Reduction& reduction, const Call& call) = 0;
  virtual Result<void> AllToAll(std::span<const Block> outputs, std::span<const ConstBlock> inputs,
                                const Call& call) = 0;
  virtual Result<void> Barrier(const Call& call) = 0;

  // This rank does not take part in `call`, as its arguments are bad: the others'
  // calls fail, "rank 3 refused AllGather #17 (...): <reason>". Waits only if they
  // are some such calls behind. Whether the group is sound after that: the
  // others' error is kInvalid then, else kSystem.
  virtual bool Refuse(const Call& call, const std::string& reason) = 0;

  // Ends for good what any rank of the group waits for here, transfers too, with
  // an error that gives `reason`, which names this rank, where it can be told. No block is touched
  // afterwards. Thread: any.
  virtual void Abort(const std::string& reason) = 0;

  // Begin to move; the block is in use until it is over. `destination` is not
  // this rank. Receives match in the order in which they were started.
  virtual Result<std::unique_ptr<Transfer>> StartSend(ConstBlock data, int destination,
                                                      const Envelope& envelope) = 0;
  virtual Result<std::unique_ptr<Transfer>> StartRecv(Block data, std::optional<int> source,
                                                      const Envelope& envelope) = 0;
};

struct BackendConfig {
  std::vector<int> global_ranks;  // of the members, by group rank: for messages
  int group_rank;
  store::Store& store;                // outlives the backend
  std::string key_prefix;             // of all keys that the backend sets
  std::string network_interface;      // empty: `host` says where to listen
  std::string host;                   // this rank's address for the others
  std::chrono::milliseconds timeout;  // for connecting to the others
  DeathWatch deaths = {};
  bool checks_all_calls = false;  // debug level DETAIL

  int world_size() const { return static_cast<int>(global_ranks.size()); }
};

// What librankrun_<name>.so exports. The library and its plug-ins are built
// together: the number is there to refuse one left over from another version.
inline constexpr uint32_t kBackendAbiVersion = 3;
inline constexpr char kBackendPluginSymbol[] = "rankrun_backend_plugin";

struct BackendPlugin {
  uint32_t abi_version;
  // Connects to all other ranks; all of them are in Create as well.
  // Errors: as Backend's, and kProtocol for an error of the store.
  Result<std::unique_ptr<Backend>> (*create)(const BackendConfig& config);
};
using BackendPluginFunction = const BackendPlugin*();

}  // namespace rankrun::comm

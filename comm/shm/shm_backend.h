#pragma once

#include <memory>
#include <vector>

#include "comm/backend.h"
#include "comm/shm/calls.h"
#include "comm/shm/executor.h"
#include "comm/shm/messages.h"
#include "comm/shm/segment.h"
#include "comm/shm/wait.h"

namespace rankrun::comm {

// Collectives between processes of one host through shared memory. Results of
// reductions are bit by bit the same on all ranks: they are always made in the
// order of ranks.
// Data of AllReduce, Reduce and Broadcast of up to kInlineBytes is exchanged with
// the call itself; up to a chunk,
// the call is the only wait but in two-phase reductions; larger data goes through
// buffers in rounds (schedule.h).
class ShmBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> Create(const BackendConfig& config);

  Result<void> AllReduce(std::byte* data, std::size_t count, const Reduction& reduction,
                         const Call& call) override;
  Result<void> Reduce(std::byte* output, const std::byte* input, std::size_t count,
                      const Reduction& reduction, const Call& call) override;
  Result<void> Broadcast(Block data, const Call& call) override;
  Result<void> AllGather(std::span<const Block> outputs, ConstBlock input,
                         const Call& call) override;
  Result<void> Gather(std::span<const Block> outputs, ConstBlock input, const Call& call) override;
  Result<void> Scatter(Block output, std::span<const ConstBlock> inputs, const Call& call) override;
  Result<void> ReduceScatter(Block output, std::span<const ConstBlock> inputs,
                             const Reduction& reduction, const Call& call) override;
  Result<void> AllToAll(std::span<const Block> outputs, std::span<const ConstBlock> inputs,
                        const Call& call) override;
  Result<void> Barrier(const Call& call) override;
  bool Refuse(const Call& call, const std::string& reason) override;
  void Abort(const std::string& reason) override;
  Result<std::unique_ptr<Transfer>> StartSend(ConstBlock data, int destination,
                                              const Envelope& envelope) override;
  Result<std::unique_ptr<Transfer>> StartRecv(Block data, std::optional<int> source,
                                              const Envelope& envelope) override;

 private:
  ShmBackend(const BackendConfig& config, std::unique_ptr<Segment> segment);

  bool IsRoot(const Call& call) const { return call.operation.root == segment_->rank(); }
  Result<void> InLine(std::byte* output, ConstBlock input, const Reduction& reduction,
                      const Call& call);

  const std::unique_ptr<Segment> segment_;
  ShmMessages messages_;
  Waiter waiter_;
  Calls calls_;
  Executor executor_;
  std::vector<const void*> in_lines_;
};

}  // namespace rankrun::comm

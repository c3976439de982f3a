#include "comm/shm/backend.h"

#include <algorithm>
#include <utility>

namespace rankrun::comm::shm {
namespace {

using Kind = Operation::Kind;

// Measured optimum. With half of this size, readers find the data in the
// writer's own cache (1 MiB, 2 ranks: 85 us instead of 56). With twice this
// size, it has left the shared cache (64 MiB, 4 ranks: 19.7 ms instead of
// 18.0).
constexpr size_t kBufferBytes = 256 * 1024;
constexpr size_t kFlatBytes = 16 * 1024;
// Up to this size a rank shows its whole data with its call, which needs no schedule.
constexpr size_t kShownBytes = ChunkTuner::kMinBytes - 1;
static_assert(kInlineBytes <= kShownBytes && kShownBytes <= kFlatBytes);

// With two ranks both algorithms read the same number of bytes.
bool Flat(size_t bytes, int world_size) { return world_size <= 2 || bytes <= kFlatBytes; }

}  // namespace

Result<std::unique_ptr<Backend>> ShmBackend::Create(const BackendConfig& config) {
  auto backend = CreateShm(config, nullptr);
  if (!backend) return std::move(backend).error();
  return std::unique_ptr<Backend>(*std::move(backend));
}

Result<std::unique_ptr<ShmBackend>> ShmBackend::CreateShm(const BackendConfig& config,
                                                          ProgressHook* beside) {
  auto segment = Segment::Meet(config, kBuffers * kBufferBytes);
  if (!segment) return std::move(segment).error();
  return std::unique_ptr<ShmBackend>(new ShmBackend(config, *std::move(segment), beside));
}

ShmBackend::ShmBackend(const BackendConfig& config, std::unique_ptr<Segment> segment,
                       ProgressHook* beside)
    : segment_(std::move(segment)),
      messages_(*segment_, config.deaths),
      progress_(messages_, beside),
      waiter_(*segment_, config.deaths, &progress_),
      calls_(*segment_, waiter_, kBufferBytes),
      executor_(*segment_, waiter_, calls_, kBufferBytes),
      relay_(*segment_, calls_),
      parts_(static_cast<size_t>(segment_->world_size())) {}

bool ShmBackend::Relays(size_t bytes) const {
  return bytes <= kBufferBytes && Flat(bytes, segment_->world_size());
}

Result<void> ShmBackend::ShowAndReduce(std::byte* output, ConstBlock input,
                                       const Reduction& reduction, const Call& call) {
  if (!calls_.Begin(call)) return calls_.TakeError();
  std::copy_n(input.data, input.bytes, calls_.room(segment_->rank(), input.bytes));
  calls_.Publish();
  if (!calls_.AwaitAll()) return calls_.TakeError();
  if (output == nullptr) return {};
  for (int r = 0; r < segment_->world_size(); ++r) {
    bool mine = r == segment_->rank();
    parts_[static_cast<size_t>(r)] = mine ? input.data : calls_.room(r, input.bytes);
  }
  comm::Reduce(reduction, output, parts_, input.bytes / SizeOf(reduction.dtype));
  return {};
}

Result<void> ShmBackend::AllReduce(std::byte* data, size_t count, const Reduction& reduction,
                                   const Call& call) {
  size_t bytes = count * SizeOf(reduction.dtype);
  ConstBlock input{data, bytes};
  if (bytes <= kShownBytes) return ShowAndReduce(data, input, reduction, call);
  Block output{data, bytes};
  return executor_.Run({.kind = Kind::kAllReduce,
                        .inputs = {&input, 1},
                        .outputs = {&output, 1},
                        .reduction = &reduction,
                        .flat = Flat(bytes, segment_->world_size())},
                       call);
}

Result<void> ShmBackend::Reduce(std::byte* output, const std::byte* input, size_t count,
                                const Reduction& reduction, const Call& call) {
  size_t bytes = count * SizeOf(reduction.dtype);
  ConstBlock from{input, bytes};
  if (bytes <= kShownBytes) {
    return ShowAndReduce(IsRoot(call) ? output : nullptr, from, reduction, call);
  }
  Block to{output, bytes};
  return executor_.Run({.kind = Kind::kReduce,
                        .root = call.root,
                        .inputs = {&from, 1},
                        .outputs = {&to, 1},
                        .reduction = &reduction,
                        .flat = Flat(bytes, segment_->world_size())},
                       call);
}

Result<void> ShmBackend::Broadcast(Block data, const Call& call) {
  ConstBlock input{data.data, data.bytes};
  int root = call.root;
  if (data.bytes > kShownBytes) {
    return executor_.Run(
        {.kind = Kind::kBroadcast, .root = root, .inputs = {&input, 1}, .outputs = {&data, 1}},
        call);
  }
  if (!calls_.Begin(call)) return calls_.TakeError();
  if (IsRoot(call)) std::copy_n(data.data, data.bytes, calls_.room(root, data.bytes));
  calls_.Publish();
  if (!calls_.AwaitAll()) return calls_.TakeError();
  if (!IsRoot(call)) std::copy_n(calls_.room(root, data.bytes), data.bytes, data.data);
  return {};
}

Result<void> ShmBackend::AllGather(std::span<const Block> outputs, ConstBlock input,
                                   const Call& call) {
  return executor_.Run({.kind = Kind::kAllGather, .inputs = {&input, 1}, .outputs = outputs}, call);
}

Result<void> ShmBackend::Gather(std::span<const Block> outputs, ConstBlock input,
                                const Call& call) {
  return executor_.Run(
      {.kind = Kind::kGather, .root = call.root, .inputs = {&input, 1}, .outputs = outputs}, call);
}

Result<void> ShmBackend::Scatter(Block output, std::span<const ConstBlock> inputs,
                                 const Call& call) {
  return executor_.Run(
      {.kind = Kind::kScatter, .root = call.root, .inputs = inputs, .outputs = {&output, 1}}, call);
}

Result<void> ShmBackend::ReduceScatter(Block output, std::span<const ConstBlock> inputs,
                                       const Reduction& reduction, const Call& call) {
  return executor_.Run({.kind = Kind::kReduceScatter,
                        .inputs = inputs,
                        .outputs = {&output, 1},
                        .reduction = &reduction},
                       call);
}

Result<void> ShmBackend::AllToAll(std::span<const Block> outputs,
                                  std::span<const ConstBlock> inputs, const Call& call) {
  return executor_.Run({.kind = Kind::kAllToAll, .inputs = inputs, .outputs = outputs}, call);
}

Result<void> ShmBackend::Barrier(const Call& call) {
  if (!calls_.Begin(call)) return calls_.TakeError();
  calls_.Publish();
  if (!calls_.AwaitAll()) return calls_.TakeError();
  return {};
}

bool ShmBackend::Refuse(const Call& call, const std::string& reason) {
  return calls_.Refuse(call, reason);
}

void ShmBackend::Abort(const std::string& reason) { Fail({ErrorCode::kSystem, reason}); }

void ShmBackend::Fail(const Error& error) {
  segment_->errors().Publish(error);
  messages_.Abort(segment_->errors().Published().value_or(error));  // the first error wins
}

Result<std::unique_ptr<Transfer>> ShmBackend::StartSend(ConstBlock data, int destination,
                                                        const Envelope& envelope) {
  return messages_.StartSend(data, destination, envelope);
}

Result<std::unique_ptr<Transfer>> ShmBackend::StartRecv(Block data, std::optional<int> source,
                                                        const Envelope& envelope) {
  return messages_.StartRecv(data, source, envelope);
}

}  // namespace rankrun::comm::shm

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

Result<void> ShmBackend::Run(const Collective& collective, const Call& call) {
  switch (collective.kind) {
    case Kind::kBarrier:
      return Meet(call);
    case Kind::kBroadcast: {
      const Block& data = collective.outputs.front();
      if (data.bytes <= kShownBytes) return ShowAndBroadcast(collective, call);
      const ConstBlock input{data.data, data.bytes};  // the schedule has one on the root
      Collective with_input = collective;
      with_input.inputs = {&input, 1};
      return executor_.Run(with_input, false, call);
    }
    case Kind::kAllReduce:
    case Kind::kReduce: {
      size_t bytes = collective.inputs.front().bytes;
      if (bytes > kShownBytes) {
        return executor_.Run(collective, Flat(bytes, segment_->world_size()), call);
      }
      bool has_result = collective.kind == Kind::kAllReduce || collective.is_root(segment_->rank());
      return ShowAndReduce(collective, has_result, call);
    }
    default:
      return executor_.Run(collective, false, call);
  }
}

Result<void> ShmBackend::ShowAndReduce(const Collective& collective, bool has_result,
                                       const Call& call) {
  const ConstBlock& input = collective.inputs.front();
  const Reduction& reduction = collective.reduction;
  if (!calls_.Begin(call)) return calls_.TakeError();
  std::copy_n(input.data, input.bytes, calls_.room(segment_->rank(), input.bytes));
  calls_.Publish();
  if (!calls_.AwaitAll()) return calls_.TakeError();
  if (!has_result) return {};
  for (int r = 0; r < segment_->world_size(); ++r) {
    bool mine = r == segment_->rank();
    parts_[static_cast<size_t>(r)] = mine ? input.data : calls_.room(r, input.bytes);
  }
  comm::Reduce(reduction, collective.outputs.front().data, parts_,
               input.bytes / SizeOf(reduction.dtype));
  return {};
}

Result<void> ShmBackend::ShowAndBroadcast(const Collective& collective, const Call& call) {
  const Block& data = collective.outputs.front();
  int root = collective.root;
  bool is_root = collective.is_root(segment_->rank());
  if (!calls_.Begin(call)) return calls_.TakeError();
  if (is_root) std::copy_n(data.data, data.bytes, calls_.room(root, data.bytes));
  calls_.Publish();
  if (!calls_.AwaitAll()) return calls_.TakeError();
  if (!is_root) std::copy_n(calls_.room(root, data.bytes), data.bytes, data.data);
  return {};
}

Result<void> ShmBackend::Meet(const Call& call) {
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

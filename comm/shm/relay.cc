#include "comm/shm/relay.h"

#include <algorithm>

namespace rankrun::comm::shm {

Relay::Relay(const Segment& segment, CallRendezvous& calls)
    : segment_(segment), calls_(calls), parts_(static_cast<size_t>(segment.world_size())) {}

Result<void> Relay::Run(const Collective& collective, const Call& call, const Exchange& exchange) {
  if (!calls_.Begin(call)) return calls_.TakeError();
  Block data = collective.outputs.empty() ? Block{nullptr, 0} : collective.outputs.front();
  if (collective.is_root(segment_.rank())) return RunOnRoot(data, collective.reduction, exchange);
  return RunElsewhere(data, collective.root);
}

Result<void> Relay::RunOnRoot(Block data, const Reduction& reduction, const Exchange& exchange) {
  calls_.PublishQuietly();  // the others sleep until the second call, unless their call differs
  if (!calls_.AwaitAll()) return calls_.TakeError();
  for (int r = 0; r < segment_.world_size(); ++r) {
    parts_[static_cast<size_t>(r)] = r == segment_.rank() ? data.data : calls_.room(r, data.bytes);
  }
  calls_.Continue();
  std::byte* result = calls_.room(segment_.rank(), data.bytes);
  if (data.bytes > 0) Reduce(reduction, result, parts_, data.bytes / SizeOf(reduction.dtype));
  if (auto ok = exchange(result); !ok) return ok;
  calls_.Publish();
  if (!calls_.AwaitAll()) return calls_.TakeError();
  std::copy_n(result, data.bytes, data.data);
  return {};
}

Result<void> Relay::RunElsewhere(Block data, int root) {
  std::copy_n(data.data, data.bytes, calls_.room(segment_.rank(), data.bytes));
  calls_.Publish();
  calls_.Continue();
  calls_.Publish();
  if (!calls_.AwaitAll()) return calls_.TakeError();
  std::copy_n(calls_.room(root, data.bytes), data.bytes, data.data);
  return {};
}

}  // namespace rankrun::comm::shm

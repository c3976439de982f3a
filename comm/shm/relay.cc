#include "comm/shm/relay.h"

#include <algorithm>

namespace rankrun::comm::shm {

Relay::Relay(const Segment& segment, CallRendezvous& calls)
    : segment_(segment), calls_(calls), parts_(static_cast<size_t>(segment.world_size())) {}

Result<void> Relay::Run(std::byte* data, size_t count, const Reduction& reduction, const Call& call,
                        const Exchange& exchange) {
  if (!calls_.Begin(call)) return calls_.TakeError();
  if (call.root == segment_.rank()) return RunOnRoot(data, count, reduction, exchange);
  return RunElsewhere(data, count * SizeOf(reduction.dtype), call.root);
}

Result<void> Relay::RunOnRoot(std::byte* data, size_t count, const Reduction& reduction,
                              const Exchange& exchange) {
  calls_.PublishQuietly();  // the others sleep until the second call, unless their call differs
  if (!calls_.AwaitAll()) return calls_.TakeError();
  size_t bytes = count * SizeOf(reduction.dtype);
  for (int r = 0; r < segment_.world_size(); ++r) {
    parts_[static_cast<size_t>(r)] = r == segment_.rank() ? data : calls_.room(r, bytes);
  }
  calls_.Continue();
  std::byte* result = calls_.room(segment_.rank(), bytes);
  if (count > 0) Reduce(reduction, result, parts_, count);
  if (auto ok = exchange(result); !ok) return ok;
  calls_.Publish();
  if (!calls_.AwaitAll()) return calls_.TakeError();
  std::copy_n(result, bytes, data);
  return {};
}

Result<void> Relay::RunElsewhere(std::byte* data, size_t bytes, int root) {
  std::copy_n(data, bytes, calls_.room(segment_.rank(), bytes));
  calls_.Publish();
  calls_.Continue();
  calls_.Publish();
  if (!calls_.AwaitAll()) return calls_.TakeError();
  std::copy_n(calls_.room(root, bytes), bytes, data);
  return {};
}

}  // namespace rankrun::comm::shm

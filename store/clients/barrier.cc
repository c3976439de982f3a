#include <string>

#include "store/clients/describe.h"
#include "store/store.h"

// The barrier that every store has, by keys alone.
namespace rankrun::store {

using std::chrono::milliseconds;

Result<void> MeetByKeys(Store& store, std::string_view key, int64_t world_size,
                        milliseconds timeout) {
  if (auto ok = CheckBarrierSize(key, world_size); !ok) return ok;
  std::string what = DescribeBarrier(key);
  std::string members = std::string(key) + "/num_members";
  std::string last = std::string(key) + "/last_member";
  auto count = store.Add(members, 1);
  if (!count) return std::move(count).error().In(what);
  if (*count >= world_size) {
    auto released = store.Set(last, "1");
    if (!released) return std::move(released).error().In(what);
    return released;
  }
  auto waited = store.Wait({&last, 1}, timeout);
  if (waited) return waited;
  if (waited.error().code != ErrorCode::kTimeout) return std::move(waited).error().In(what);
  count = store.Add(members, 0);
  if (!count) return std::move(count).error().In(what);
  if (*count >= world_size) return {};
  return BarrierTimeoutError(key, *count, world_size, timeout);
}

}  // namespace rankrun::store

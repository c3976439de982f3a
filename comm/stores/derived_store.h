#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <rankrun/store_base.h>

#include "base/clock.h"
#include "base/status/death_watch.h"
#include "store/store.h"

namespace rankrun::comm {

// A Store of a class that the program has derived, for the parts of this library
// that use stores. Exceptions become errors. An agent's death message ends waits,
// which therefore reach the program in slices. A barrier is one by keys.
//   DistNetworkError           kPeerLost
//   DistStoreError and DistTimeoutError of a wait whose time-out has passed
//                              kTimeout
//   DistError itself           kInvalid
//   all others                 kProtocol, the store has failed
// Thread: any, as the program's class.
class DerivedStore final : public store::Store {
 public:
  explicit DerivedStore(std::shared_ptr<rankrun::Store> store,
                        const DeathWatch& deaths = DeathWatch::OfThisProcess())
      : store_(std::move(store)), deaths_(deaths) {}

  Result<void> Set(std::string_view key, std::string_view value) override;
  Result<std::string> Get(std::string_view key, std::chrono::milliseconds timeout) override;
  Result<int64_t> Add(std::string_view key, int64_t delta) override;
  Result<bool> Check(std::span<const std::string> keys) override;
  Result<void> Wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) override;
  Result<store::CompareSetResult> CompareSet(std::string_view key, std::string_view expected,
                                             std::string_view desired) override;
  Result<bool> Delete(std::string_view key) override;
  Result<void> Append(std::string_view key, std::string_view value) override;
  Result<std::vector<std::string>> MultiGet(std::span<const std::string> keys,
                                            std::chrono::milliseconds timeout) override;
  Result<void> MultiSet(std::span<const std::string> keys,
                        std::span<const std::string> values) override;
  Result<int64_t> NumKeys() override;
  Result<std::vector<std::string>> ListKeys() override;
  Result<void> QueuePush(std::string_view key, std::string_view value) override;
  Result<std::string> QueuePop(std::string_view key, std::chrono::milliseconds timeout) override;
  Result<std::optional<std::string>> TryQueuePop(std::string_view key) override;
  Result<int64_t> QueueLength(std::string_view key) override;
  // Returns another user of the same object.
  Result<std::unique_ptr<store::Store>> CloneWith(std::chrono::milliseconds timeout,
                                                  std::chrono::milliseconds reply_timeout) override;

 private:
  template <typename WaitCall>
  auto InSlices(const std::string& what, std::chrono::milliseconds timeout, WaitCall wait)
      -> Result<std::invoke_result_t<WaitCall, std::chrono::milliseconds>>;

  const std::shared_ptr<rankrun::Store> store_;  // shared with the program and with clones
  const DeathWatch deaths_;
};

}  // namespace rankrun::comm

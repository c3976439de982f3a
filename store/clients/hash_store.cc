#include "store/clients/hash_store.h"

namespace rankrun::store {
namespace {

class MemoryTable final : public TableSource {
 public:
  explicit MemoryTable(const DeathWatch& deaths) : TableSource(deaths) {}

  Result<void> Refresh(Session&, Purpose, TimePoint) override REQUIRES(mutex_) { return {}; }

  Result<void> Commit(Session&, std::vector<Change> changes) override REQUIRES(mutex_) {
    for (const Change& change : changes) table_.Apply(change);
    return {};
  }

  Duration LongestSleep() const override { return Duration::max(); }
  std::chrono::milliseconds LockTimeout() const override { return {}; }
};

}  // namespace

HashStore::HashStore(const DeathWatch& deaths)
    : TableStore(std::make_shared<MemoryTable>(deaths)) {}

}  // namespace rankrun::store

#include "store/hash_store.h"

namespace rankrun::store {
namespace {

class MemoryTable final : public TableSource {
 public:
  explicit MemoryTable(const DeathWatch& deaths) : TableSource(deaths) {}

  Result<void> Refresh(Session& session, Purpose, TimePoint) override {
    if (!session.lock.owns_lock()) session.lock = std::unique_lock(mutex_);
    return {};
  }

  Result<void> Commit(Session&, std::vector<Change> changes) override {
    for (const Change& change : changes) table_.Apply(change);
    return {};
  }

  Duration LongestSleep() const override { return Duration::max(); }
  std::chrono::milliseconds Patience() const override { return {}; }
};

}  // namespace

HashStore::HashStore(const DeathWatch& deaths)
    : TableStore(std::make_shared<MemoryTable>(deaths)) {}

}  // namespace rankrun::store

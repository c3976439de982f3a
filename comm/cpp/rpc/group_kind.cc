#include "comm/cpp/rpc/group_kind.h"

#include <atomic>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "comm/group/store_barrier.h"

namespace rankrun::rpc {
namespace {

using std::chrono::milliseconds;

std::string CountKey(const std::string& prefix) { return prefix + "/static"; }
std::string WorkerKey(const std::string& prefix) { return prefix + "/static_worker"; }
std::string BarrierPrefix(const std::string& prefix, const std::string& number) {
  return prefix + "/static_" + number;
}

std::string CameKey(const std::string& barrier, int rank) {
  return barrier + "/came/" + std::to_string(rank);
}

// Number of barriers of this process, as the ranks of its groups count them.
std::atomic<int>& Barriers() {
  static std::atomic<int> count = 0;
  return count;
}

Error Mixed(const std::string& of_static, const std::string& of_dynamic) {
  return {ErrorCode::kInvalid, "worker " + of_static +
                                   " calls rpc::Init without is_dynamic, but worker " + of_dynamic +
                                   " with it, in the same store: want one kind of group, or "
                                   "another store"};
}

}  // namespace

void StaticMark::Remove() {
  if (!std::exchange(is_marked_, false)) return;
  static_cast<void>(list_.store().Add(CountKey(prefix_), -1));
}

Result<void> StaticMark::Enter(const StaticWorker& worker, milliseconds timeout) {
  const std::string number = std::to_string(Barriers().load());
  barrier_ = BarrierPrefix(prefix_, number);
  world_size_ = worker.world_size;
  store::Store& store = list_.store();
  auto named = store.Set(WorkerKey(prefix_), number + " " + worker.name);
  if (!named) return named;
  auto counted = store.Add(CountKey(prefix_), 1);
  if (!counted) return std::move(counted).error();
  is_marked_ = true;
  // After the mark, and a joiner looks for it after its name is on the list: one of both
  // sees the other.
  if (auto ok = CheckNotDynamic(worker); !ok) {
    Withdraw();
    return ok;
  }
  Barriers() += 1;
  auto came = store.Add(CameKey(barrier_, worker.rank), 1);
  if (!came) return std::move(came).error();
  if (*came > 1) return {};  // keys are left from another run, which the context will say
  std::vector<int> ranks(static_cast<size_t>(worker.world_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return comm::StoreBarrier(store, barrier_, worker.rank, std::move(ranks)).Pass(timeout);
}

// Leaves the barrier as if this worker had not come, unless others have, which a worker of
// the dynamic group has refused: it is over for them.
void StaticMark::Withdraw() {
  store::Store& store = list_.store();
  is_marked_ = false;
  auto marks = store.Add(CountKey(prefix_), -1);
  auto has = [&](const std::string& key) {
    const std::string full = barrier_ + key;
    auto exists = store.Check(std::span(&full, 1));
    return exists && *exists;
  };
  if (has("/0/count")) {
    if (has("/0/verdict")) Barriers() += 1;
  } else if (marks && *marks == 0) {
    static_cast<void>(store.Delete(barrier_ + "/0/verdict"));
  }
}

Result<void> StaticMark::CheckNotDynamic(const StaticWorker& worker) {
  auto members = list_.Read();
  if (!members) return std::move(members).error();
  if (members->list.empty()) return {};
  return Mixed(worker.name, members->list.front().worker.name);
}

void StaticMark::Tidy() {
  store::Store& store = list_.store();
  auto forget = [&](const std::string& key) { static_cast<void>(store.Delete(barrier_ + key)); };
  for (int rank = 0; rank < world_size_; ++rank) {
    static_cast<void>(store.Delete(CameKey(barrier_, rank)));
    forget("/0/arrived/" + std::to_string(rank));
  }
  forget("/0/count");
  forget("/0/verdict");
}

Result<void> RefuseStatic(store::Store& store, const std::string& prefix, const std::string& name) {
  const std::string key = CountKey(prefix);
  auto is_there = store.Check(std::span(&key, 1));
  if (!is_there) return std::move(is_there).error();
  if (!*is_there) return {};
  auto count = store.Add(key, 0);
  if (!count) return std::move(count).error();
  if (*count <= 0) return {};
  auto worker = store.Get(WorkerKey(prefix), milliseconds(0));
  if (!worker) return std::move(worker).error();
  size_t end = worker->find(' ');
  if (end == std::string::npos) end = 0;
  Error mixed = Mixed(worker->substr(end + 1), name);
  comm::StoreBarrier waiting(store, BarrierPrefix(prefix, worker->substr(0, end)), 0, {0});
  static_cast<void>(waiting.Refuse(mixed));
  return mixed;
}

}  // namespace rankrun::rpc

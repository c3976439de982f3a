// Workers of RPC that join and leave. A worker that joins connects with those that were there
// before it; each of these learns of it from the list in the store.

#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/process/start_thread.h"
#include "comm/core/throw.h"
#include "comm/cpp/rpc/device_data.h"
#include "comm/cpp/rpc/group_kind.h"
#include "comm/cpp/rpc/methods.h"
#include "comm/cpp/rpc/worker_agent.h"
#include "comm/rpc/member_list.h"
#include "comm/world/open_group.h"

namespace rankrun::rpc {
namespace {

namespace core = comm::rpc;
using core::Member;
using core::MemberList;
using core::Members;
using std::chrono::milliseconds;
using NewConnection = Result<std::unique_ptr<comm::stream::Connection>>;

constexpr char kGroup[] = "rpc";
// A worker that was not told of a change, because the one that made it died, sees it this
// late.
constexpr milliseconds kMaxBlindness{500};
constexpr milliseconds kBeforeNextLook{1};
// A process that answers no connection for so long is dead, or its host is.
constexpr milliseconds kSilenceOfTheDead{3000};
// Time in which a worker that has announced its end takes itself off the list.
constexpr std::chrono::seconds kTimeToLeave{10};

// Workers with which one thread is to connect, one after the other.
struct Waits {
  std::map<int64_t, Member> members;  // by version
  int64_t under_way = 0;              // version of the one with which it connects now
};

// Three threads use the store: one that joins and leaves, the watcher, and the connector,
// which waits for workers that join later. The watcher waits for nobody, so that it can end
// the waits of the others.
class DynamicGroup final : public WorkerGroup {
 public:
  struct Lists {
    MemberList own;
    MemberList of_watcher;
    MemberList of_connector;
    MemberList of_checks;  // of HasLeft
  };
  DynamicGroup(comm::OpenPlace place, Lists lists, Member self, milliseconds limit,
               std::shared_ptr<core::DeviceTable> devices, comm::Beacon beacon)
      : place_(std::move(place)),
        lists_(std::move(lists)),
        self_(std::move(self)),
        limit_(limit),
        devices_(std::move(devices)),
        beacon_(std::move(beacon)) {}
  ~DynamicGroup() override { DynamicGroup::Leave(); }

  // Connects with the workers that were there before. Others may join from now on.
  Result<void> Enter(core::Agent& agent, const Members& before) EXCLUDES(mutex_);
  void Join(core::Agent& agent, milliseconds limit) override;
  void Leave() override EXCLUDES(mutex_);
  bool HasLeft(int id) override EXCLUDES(checks_mutex_);
  void OnLost(int id, bool has_ended) override EXCLUDES(lost_mutex_);

 private:
  Result<void> StartThreads(core::Agent& agent);
  Result<void> ConnectBefore(core::Agent& agent, const Member& before) EXCLUDES(mutex_);
  void ConnectLater(core::Agent& agent) EXCLUDES(mutex_);
  NewConnection Connect(MemberList& list, const Member& other,
                        const std::atomic<bool>& is_cancelled);
  Result<void> Add(core::Agent& agent, const Member& member, NewConnection connection)
      REQUIRES(mutex_);
  void Watch(core::Agent& agent) EXCLUDES(mutex_);
  void RemoveLost(const core::Agent& agent) EXCLUDES(mutex_, lost_mutex_);
  void TakeOff(MemberList& list, const Member& member);
  void EndOutsideOfTheList(core::Agent& agent, const std::string& by) EXCLUDES(mutex_);
  std::string why_out() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return why_out_;
  }
  void Apply(core::Agent& agent, const Members& members) EXCLUDES(mutex_);
  comm::Pair PairWith(const Member& other) const;

  const comm::OpenPlace place_;
  Lists lists_;
  const Member self_;
  const milliseconds limit_;
  const std::shared_ptr<core::DeviceTable> devices_;  // owners: this and the agent
  const comm::Beacon beacon_;
  std::thread watcher_;
  std::thread connector_;
  std::atomic<bool> is_leaving_ = false;
  std::atomic<bool> is_out_ = false;  // off the list, by another worker
  // The connection under way is wanted no more:
  std::atomic<bool> before_is_cancelled_ = false;
  std::atomic<bool> later_is_cancelled_ = false;

  Mutex checks_mutex_;  // held while HasLeft uses its list
  mutable Mutex mutex_;
  CondVar changed_;
  std::string why_out_ GUARDED_BY(mutex_);
  std::map<int, Member> known_ GUARDED_BY(mutex_);  // by id, without this worker
  // Those of them with which it is not connected yet:
  Waits before_ GUARDED_BY(mutex_);
  Waits later_ GUARDED_BY(mutex_);

  // Not `mutex_`, because the agent may call OnLost in a call that has it.
  Mutex lost_mutex_;
  std::map<int, TimePoint> lost_ GUARDED_BY(lost_mutex_);  // by id, with the time to act
};

comm::Pair DynamicGroup::PairWith(const Member& other) const {
  const MemberList& list = lists_.own;
  bool is_later = other.joined > self_.joined;
  return {self_.worker.id, other.worker.id, !is_later,
          is_later ? list.PairKey(other, self_) : list.PairKey(self_, other)};
}

Result<void> DynamicGroup::StartThreads(core::Agent& agent) {
  auto watcher = StartThread([this, &agent] { Watch(agent); });
  if (!watcher) return std::move(watcher).error();
  watcher_ = *std::move(watcher);
  auto connector = StartThread([this, &agent] { ConnectLater(agent); });
  if (!connector) return std::move(connector).error();
  connector_ = *std::move(connector);
  return {};
}

Result<void> DynamicGroup::Enter(core::Agent& agent, const Members& before) {
  {
    MutexLock lock(mutex_);
    for (const Member& each : before.list) {
      known_.emplace(each.worker.id, each);
      before_.members.emplace(each.joined, each);
    }
  }
  if (auto ok = StartThreads(agent); !ok) return ok;
  for (const Member& each : before.list) {
    if (auto ok = ConnectBefore(agent, each); !ok) return ok;
  }
  for (const Member& each : before.list) {
    // The reply proves that the worker knows this one, and that its ConnectPair has returned.
    auto outcome = agent.Ping(each.worker.id, limit_);
    comm::ForgetPair(place_, lists_.own.store(), PairWith(each));
    if (outcome.kind == core::Outcome::Kind::kReply || agent.is_lost(each.worker.id)) continue;
    // After is_lost: a worker is off the list before the watcher forgets its connection.
    auto now = lists_.own.Read();
    if (now && !now->Has(each)) continue;
    return Error{ErrorCode::kTimeout, "worker " + each.worker.name + ": " + outcome.text};
  }
  if (is_out_.load()) return Error{ErrorCode::kPeerLost, why_out()};
  return {};
}

Result<void> DynamicGroup::ConnectBefore(core::Agent& agent, const Member& before) {
  MutexLock lock(mutex_);
  if (is_out_.load() || !before_.members.contains(before.joined)) return {};
  before_.under_way = before.joined;
  before_is_cancelled_.store(false);
  lock.Unlock();
  auto connection = Connect(lists_.own, before, before_is_cancelled_);
  bool has_left = false;
  if (!connection) {  // the other worker leaves, perhaps
    auto now = lists_.own.Read();
    has_left = now && !now->Has(before);
  }
  lock.Lock();
  before_.under_way = 0;
  bool is_there = before_.members.erase(before.joined) > 0;
  if (has_left || !is_there) return {};
  auto ok = Add(agent, before, std::move(connection));
  return ok ? ok : std::move(ok).error().In("worker " + before.worker.name);
}

// Connects with each worker that joins after this one, in their order. A worker with which
// that fails cannot stay.
void DynamicGroup::ConnectLater(core::Agent& agent) {
  MutexLock lock(mutex_);
  while (!is_leaving_.load() && !is_out_.load()) {
    if (later_.members.empty()) {
      changed_.Wait(mutex_);
      continue;
    }
    const Member joiner = later_.members.begin()->second;
    later_.under_way = joiner.joined;
    later_is_cancelled_.store(false);
    lock.Unlock();
    auto connection = Connect(lists_.of_connector, joiner, later_is_cancelled_);
    lock.Lock();
    later_.under_way = 0;
    bool is_there = later_.members.erase(joiner.joined) > 0;
    if (!is_there || Add(agent, joiner, std::move(connection))) continue;
    lock.Unlock();
    TakeOff(lists_.of_connector, joiner);
    lock.Lock();
  }
}

NewConnection DynamicGroup::Connect(MemberList& list, const Member& other,
                                    const std::atomic<bool>& is_cancelled) {
  return comm::ConnectPair(place_, list.store(), PairWith(other), limit_, is_cancelled);
}

// Called with the lock, so that no worker is added after Apply has removed it.
Result<void> DynamicGroup::Add(core::Agent& agent, const Member& member, NewConnection connection) {
  if (!connection) return std::move(connection).error();
  std::vector<core::NewPeer> peers;
  peers.push_back({member.worker, *std::move(connection)});
  return agent.AddPeers(std::move(peers));
}

void DynamicGroup::Watch(core::Agent& agent) {
  MemberList& list = lists_.of_watcher;
  while (!is_leaving_.load() && list.AwaitChange(self_, kMaxBlindness)) {
    RemoveLost(agent);
    beacon_.ForgetLooks();
    auto members = list.Read();
    if (!members) return;
    if (!members->Has(self_)) return EndOutsideOfTheList(agent, members->RemoverOf(self_));
    Apply(agent, *members);
  }
}

// Ends the calls of this worker, because the others do not count on it any more.
void DynamicGroup::EndOutsideOfTheList(core::Agent& agent, const std::string& by) {
  const std::string why = (by.empty() ? "another worker" : "worker " + by) +
                          " has lost this one, and has taken it off the list of workers";
  {
    MutexLock lock(mutex_);
    why_out_ = why;
    is_out_.store(true);
    before_is_cancelled_.store(true);
    later_is_cancelled_.store(true);
    changed_.NotifyAll();
  }
  agent.Close(why);
}

bool DynamicGroup::HasLeft(int id) {
  MutexLock lock(checks_mutex_);
  auto members = lists_.of_checks.Read();
  return members && members->Find(id) == nullptr;
}

void DynamicGroup::OnLost(int id, bool has_ended) {
  TimePoint now = MonotonicClock().Now();
  MutexLock lock(lost_mutex_);
  lost_[id] = has_ended ? now + kTimeToLeave : now;
}

// Takes workers off the list whose connections are lost.
void DynamicGroup::RemoveLost(const core::Agent& agent) {
  TimePoint now = MonotonicClock().Now();
  std::vector<Member> lost;
  {
    MutexLock lock(mutex_);
    MutexLock lost_lock(lost_mutex_);
    for (auto each = lost_.begin(); each != lost_.end();) {
      auto [id, due] = *each;
      auto found = known_.find(id);
      bool is_lost = found != known_.end() && agent.is_lost(id);
      if (is_lost && due <= now) lost.push_back(found->second);
      each = is_lost && due > now ? std::next(each) : lost_.erase(each);
    }
  }
  for (const Member& each : lost) TakeOff(lists_.of_watcher, each);
}

void DynamicGroup::TakeOff(MemberList& list, const Member& member) {
  auto changed = list.Change([&](const Members& now) -> Result<Members> {
    // A worker that others have taken off has no say any more.
    if (!now.Has(self_) || !now.Has(member)) return Error{ErrorCode::kNotFound, "off the list"};
    return Without(now, member, self_.worker.name);
  });
  static_cast<void>(changed);  // without a store nobody joins
}

// Makes this worker's view that of the list.
void DynamicGroup::Apply(core::Agent& agent, const Members& members) {
  std::vector<Member> gone;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, member] : known_) {
      if (!members.Has(member)) gone.push_back(member);
    }
    for (const Member& each : gone) {
      known_.erase(each.worker.id);
      before_.members.erase(each.joined);
      later_.members.erase(each.joined);
      if (each.joined == before_.under_way) before_is_cancelled_.store(true);
      if (each.joined == later_.under_way) later_is_cancelled_.store(true);
    }
  }
  for (const Member& each : gone) agent.RemovePeer(each.worker.id);
  devices_->Set(self_.worker.name, members.Devices());  // before a joiner can call
  MutexLock lock(mutex_);
  for (const Member& each : members.list) {
    bool is_new = each.joined > self_.joined && known_.emplace(each.worker.id, each).second;
    if (is_new) later_.members.emplace(each.joined, each);
  }
  changed_.NotifyAll();
}

void DynamicGroup::Join(core::Agent& agent, milliseconds limit) {
  TimePoint deadline = MonotonicClock().Now() + FiniteLimit(limit);
  while (agent.unfinished() > 0 || agent.has_queued()) {
    if (MonotonicClock().Now() >= deadline) {
      ThrowUnfinished(static_cast<int64_t>(agent.unfinished()), limit);
    }
    ThrowIfInterrupted();
    std::this_thread::sleep_for(kBeforeNextLook);
  }
}

void DynamicGroup::Leave() {
  if (is_leaving_.exchange(true)) return;
  MemberList& list = lists_.own;
  // Without a store the others learn of the end by their connections.
  static_cast<void>(list.Change([&](const Members& now) { return Result(Without(now, self_)); }));
  {
    MutexLock lock(mutex_);
    later_is_cancelled_.store(true);
    changed_.NotifyAll();
  }
  list.WakeUp(self_);
  if (watcher_.joinable()) watcher_.join();
  if (connector_.joinable()) connector_.join();
  list.EmptyInbox(self_);
}

// Takes the members off the list if none of them lives any more. If one does, it notices the
// end of the others.
Result<void> RemoveDead(MemberList& list, const std::string& by) {
  auto members = list.Read();
  if (!members) return std::move(members).error();
  std::vector<std::string> beacons;
  for (const Member& each : members->list) beacons.push_back(each.beacon);
  if (beacons.empty() || comm::Beacon::AnyShines(beacons, kSilenceOfTheDead)) return {};
  auto changed = list.Change([&](Members now) -> Result<Members> {
    for (const Member& each : members->list) now = Without(std::move(now), each, by);
    return now;
  });
  if (!changed) return std::move(changed).error();
  return {};
}

}  // namespace

std::unique_ptr<RpcAgent> JoinDynamicGroup(const std::shared_ptr<Store>& store,
                                           const std::string& name, int rank,
                                           const TensorPipeRpcBackendOptions& options) {
  milliseconds limit = options.rpc_timeout > milliseconds(0) ? FiniteLimit(options.rpc_timeout)
                                                             : RpcBackendOptions().rpc_timeout;
  auto place = comm::Unwrap(comm::FindOpenPlace(kGroup, store, limit, getenv));
  auto open = [&] { return MemberList(comm::Unwrap(place.store->Clone(limit)), place.key_prefix); };
  DynamicGroup::Lists lists{open(), open(), open(), open()};
  comm::Unwrap(lists.own.CheckQueues());
  comm::Unwrap(RefuseStatic(lists.own.store(), place.key_prefix, name));
  comm::Unwrap(RemoveDead(lists.own, name));
  auto beacon = comm::Unwrap(comm::Beacon::Light(place));
  const core::WorkerDevices own{
      .worker = name, .gpus = GpuCount(), .maps = options.device_maps, .devices = options.devices};
  Members before;
  auto members = comm::Unwrap(lists.own.Change([&](const Members& now) {
    before = now;
    return core::With(now, {rank, name}, own, beacon.address());
  }));
  const Member self = members.list.back();
  if (auto ok = RefuseStatic(lists.own.store(), place.key_prefix, name); !ok) {
    static_cast<void>(
        lists.own.Change([&](const Members& now) { return Result(Without(now, self)); }));
    comm::Throw(ok.error());
  }
  auto devices = std::make_shared<core::DeviceTable>();
  devices->Set(name, members.Devices());
  auto deaths = place.deaths;
  auto group = std::make_unique<DynamicGroup>(std::move(place), std::move(lists), self, limit,
                                              devices, std::move(beacon));
  DynamicGroup& entered = *group;
  auto agent = comm::Unwrap(core::Agent::Make(
      {.self = self.worker, .methods = options.num_worker_threads, .deaths = deaths},
      AllMethods()));
  auto made = std::make_unique<WorkerAgent>(std::move(group), std::move(agent), std::move(devices));
  comm::Unwrap(entered.Enter(made->agent(), before));
  return made;
}

}  // namespace rankrun::rpc

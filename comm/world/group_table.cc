#include "comm/world/group_table.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/interruptible_call.h"
#include "base/status/death_watch.h"
#include "comm/core/debug_level.h"
#include "comm/core/time_left.h"
#include "comm/group/process_group_access.h"
#include "comm/stores/store_state.h"
#include "comm/world/group_members.h"
#include "comm/world/join_group.h"
#include "comm/world/plugin.h"
#include "comm/world/wishes.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

// How long the rank that serves the store waits for the goodbyes of the others: in
// Destroy, and after a failed Init, whose reason the others still read.
constexpr milliseconds kGoodbyes{5000};
constexpr milliseconds kGoodbyesAfterError{1000};
// After Abort the others have no use for the store but to read more about it.
constexpr milliseconds kGoodbyesAfterAbort{100};

Error Invalid(const std::string& message) { return Error{ErrorCode::kInvalid, message}; }

Result<void> CheckDevice(const std::optional<Device>& device) {
  if (!device || device->type == DeviceType::kCuda) return {};
  return Invalid("device is cpu: want a GPU, such as cuda:0, or none");
}

bool IsServer(Store& store) {
  const StoreState& state = StoreState::Of(store);
  return state.server != nullptr || (state.underlying != nullptr && IsServer(*state.underlying));
}

// Returns whether the store ends when this rank destroys its world.
bool EndsStore(const store::HostedServer* server, const std::shared_ptr<Store>& given) {
  return server != nullptr || (given.use_count() == 1 && IsServer(*given));
}

// Publishes that this rank needs the store no more. The rank that serves it then
// waits until `ranks` have published the same, up to `patience`.
void SayGoodbye(store::Store& store, const GroupIdentity& all, const std::vector<int>& ranks,
                milliseconds patience) {
  auto key = [&](int rank) { return all.key_prefix + "/goodbye/" + std::to_string(rank); };
  static_cast<void>(store.Set(key(all.group_rank), ""));
  if (patience == milliseconds(0)) return;
  std::vector<std::string> keys;
  for (int rank : ranks) keys.push_back(key(rank));
  static_cast<void>(store.Wait(keys, patience));
}

// SayGoodbye after a failed Init. Waits for late ranks, too, so that they can read
// the reason; after a time-out, only for ranks that have come.
void SayGoodbyeAfterError(const Meeting& meeting, const GroupIdentity& all,
                          const std::shared_ptr<Store>& given, const Error& error) {
  if (meeting.place.agent_serves) return;
  bool ends = EndsStore(meeting.server.get(), given);
  std::vector<int> awaited = all.global_ranks;
  if (ends && error.code == ErrorCode::kTimeout) {
    std::erase_if(awaited, [&](int rank) { return !HasCome(meeting, rank); });
  }
  SayGoodbye(*meeting.store, all, awaited, ends ? kGoodbyesAfterError : milliseconds(0));
}

// Returns a name or a map of devices in its only form. Returns an invalid text
// unchanged, because JoinGroup reports it.
std::string BackendIn(const std::string& text) {
  std::string name = BackendName(text);
  auto map = ParseDeviceMap(name);
  return map ? FormatDeviceMap(*map) : name;
}

GroupIdentity WorldIdentity(const Meeting& meeting, const std::string& context,
                            const InitOptions& options, const DeathWatch& deaths) {
  return {.global_rank = meeting.place.global_rank,
          .global_ranks = AllRanks(meeting.place.world_size),
          .group_rank = meeting.place.global_rank,
          .timeout = Bounded(options.timeout),
          .key_prefix = meeting.key_prefix,
          .context = context,
          .deaths = deaths.OfRank(meeting.place.global_rank),
          .is_strict = meeting.place.is_strict,
          .slow_call = meeting.place.slow_call,
          .store_rank = meeting.store_rank};
}

// Returns the options of JoinGroup for a rank that the others reach at `host`.
JoinGroupOptions HowToJoin(GroupIdentity identity, const BackendWish& backend, TimePoint deadline,
                           const Environment& place, const std::string& host) {
  auto level = CurrentDebugLevel();
  identity.checks_all_calls = level && *level == DebugLevel::kDetail;
  return {.identity = std::move(identity),
          .deadline = deadline,
          .backend = backend,
          .plugin_folders = PluginFolders(),
          .network_interface = place.network_interface,
          .host = host,
          .algorithms = place.algorithms};
}

}  // namespace

// A second call would take the first one for another process of this rank.
Result<ProcessGroup*> GroupTable::MakeWorld(const InitOptions& options) {
  std::atomic<bool>& is_in_init = is_in_init_.Get();
  if (is_in_init.exchange(true)) {
    return Invalid("another thread of this process is in Init: want one call");
  }
  struct Mark {
    std::atomic<bool>& is_set;
    ~Mark() { is_set = false; }
  } mark{is_in_init};
  return MakeWorldAlone(options);
}

Result<ProcessGroup*> GroupTable::MakeWorldAlone(const InitOptions& options) {
  auto timeout = CheckedTimeoutOf(options);
  if (!timeout) return timeout.error();
  TimePoint deadline = std::chrono::steady_clock::now() + *timeout;
  DeathWatch deaths = DeathWatch::OfThisProcess();
  if (refused_.home.is_here()) refused_.server.reset();  // frees the port
  auto meeting = Meet(options, {context_, generation_}, ::getenv, deaths);
  ForgetRefused();  // after Meet, so that a file that Meet has entered again stays
  if (!meeting) return CountFailedInit(std::move(meeting).error());
  // Also if the rest fails, because others may have seen this generation.
  generation_ = meeting->world.generation + 1;
  const Environment& place = meeting->place;
  GroupIdentity identity = WorldIdentity(*meeting, context_, options, deaths);
  const std::string& wished = place.backend.empty() ? options.backend : place.backend;
  BackendWish backend{.name = BackendIn(wished), .nccl = options.nccl};
  store::Store& store = *meeting->store;
  JoinGroupOptions how = HowToJoin(identity, backend, deadline, place, meeting->host);
  if (!place.backend.empty()) how.backend_source = "RANKRUN_BACKEND";
  how.connects_devices = options.device.has_value();
  auto group = JoinGroup(std::move(meeting->store), how);
  if (!group) {
    SayGoodbyeAfterError(*meeting, identity, options.store, group.error());
    KeepRefused(*std::move(meeting), group.error());
    return std::move(group).error();
  }
  if (generation_ > 1 && place.global_rank == 0) {  // all ranks have left the previous world
    DeleteKeysOf(store, WorldPrefix(place, {context_, generation_ - 2}));
  }
  world_ = {.place = place,
            .host = meeting->host,
            .backend = backend,
            .server = std::move(meeting->server),
            .file = std::move(meeting->file),
            .given = options.store,
            .device = options.device};
  return ConnectDevices(Add(*std::move(group)), deadline);
}

// Checks all that needs no other rank. Returns the time-out.
Result<std::chrono::milliseconds> GroupTable::CheckedTimeoutOf(const InitOptions& options) const {
  if (auto ok = CheckHome(); !ok) return ok.error();
  if (world() != nullptr) {
    return Invalid("there is a world process group already: Destroy() it first");
  }
  auto timeout = EffectiveTimeout({}, options.timeout);
  if (!timeout) return timeout.error();
  if (auto ok = CheckDevice(options.device); !ok) return ok.error();
  if (auto level = DebugLevelForInit(); !level) return level.error();
  return timeout;
}

Result<ProcessGroup*> GroupTable::ConnectDevices(ProcessGroup* group, TimePoint deadline) {
  bool may_lack_them = group != world();
  if (!world_.device || (may_lack_them && !GroupOf(*group).has_devices())) return group;
  auto ok = GroupOf(*group).BarrierOn(*world_.device, {.timeout = TimeLeft(deadline)});
  if (ok) return group;
  if (group == world()) {
    Clear();
  } else {
    DestroyLast();
  }
  return std::move(ok).error();
}

Result<ProcessGroup*> GroupTable::MakeGroup(const GroupOptions& options) {
  if (world() == nullptr) return Invalid("there is no world process group: call Init() first");
  if (auto ok = CheckHome(); !ok) return ok.error();
  auto identity = Identify(options);
  if (!identity && options.use_local_synchronization) {
    return RefuseLocally(options, std::move(identity).error());
  }
  if (!identity) return Refuse(std::move(identity).error());
  BackendWish backend = BackendFor(options.backend, options.nccl);
  TimePoint deadline = std::chrono::steady_clock::now() + identity->timeout;
  if (!options.use_local_synchronization) {
    std::string wishes = "ranks " + Joined(identity->global_ranks) + ", " +
                         OptionsInWords(backend, identity->timeout, options.description);
    if (auto ok = Agree(wishes, deadline); !ok) return ok.error();
  }
  // Only after Agree, so that a call with different options consumes a name on
  // no rank.
  Name(*identity);
  return Enter(*std::move(identity), backend, deadline);
}

BackendWish GroupTable::BackendFor(const std::string& backend,
                                   const std::optional<NcclOptions>& nccl) const {
  bool has_a_say = !backend.empty() && world_.place.backend.empty();
  BackendWish wish = world_.backend;
  if (has_a_say) wish.name = BackendIn(backend);
  if (!HasGpus(wish.name)) wish.nccl = {};
  if (nccl) wish.nccl = *nccl;
  return wish;
}

Result<ProcessGroup*> GroupTable::Enter(GroupIdentity identity, const BackendWish& backend,
                                        TimePoint deadline,
                                        std::shared_ptr<void> device_connection) {
  if (auto aborted = live_.WorldAborted()) return *std::move(aborted);
  if (identity.group_rank < 0) return Add(std::make_unique<Group>(std::move(identity)));
  auto store = TheWorld().store().Clone(identity.timeout);
  if (!store) {
    RefuseToJoin(TheWorld().store(), identity, store.error());
    return std::move(store).error();
  }
  JoinGroupOptions how =
      HowToJoin(std::move(identity), backend, deadline, world_.place, world_.host);
  how.device_connection = std::move(device_connection);
  auto group = JoinGroup(*std::move(store), how);
  if (!group) return std::move(group).error();
  return ConnectDevices(Add(*std::move(group)), deadline);
}

Result<GroupIdentity> GroupTable::Identify(const GroupOptions& options) {
  const GroupIdentity& all = TheWorld().identity();
  GroupIdentity identity = all;
  auto ranks = MembersOf(options, all.world_size());
  if (!ranks) return std::move(ranks).error();
  identity.global_ranks = *std::move(ranks);
  identity.group_rank = IndexOf(identity.global_ranks, identity.global_rank);
  identity.description = options.description;
  auto timeout = EffectiveTimeout(options.timeout, all.timeout);
  if (!timeout) return timeout.error();
  identity.timeout = *timeout;
  return identity;
}

Error GroupTable::Refuse(Error reason) {
  TimePoint deadline = std::chrono::steady_clock::now() + TheWorld().identity().timeout;
  static_cast<void>(Agree(Refusal(reason), deadline));
  return reason;
}

// Like Refuse, if only the members wait for the call. If the ranks themselves are
// wrong, the members are unknown, so that no rank can receive the reason.
Error GroupTable::RefuseLocally(const GroupOptions& options, Error reason) {
  GroupOptions without_timeout = options;
  without_timeout.timeout = {};
  auto identity = Identify(without_timeout);
  if (!identity || identity->group_rank < 0) return reason;
  Name(*identity);
  if (!OpenMeetings(TheWorld().identity().timeout)) return reason;
  RefuseToJoin(*world_.meeting_store, *identity, reason);
  return reason;
}

Result<void> GroupTable::OpenMeetings(milliseconds timeout) {
  if (world_.meetings != nullptr) return {};
  const GroupIdentity& all = TheWorld().identity();
  auto store = TheWorld().store().Clone(timeout);
  if (!store) return std::move(store).error();
  world_.meeting_store = *std::move(store);
  world_.meetings = MakeMeetings(all, *world_.meeting_store);
  live_.SetMeetings(world_.meetings);
  return {};
}

// Publishes what this rank asks for and fails unless all ranks of the world ask
// for the same.
Result<void> GroupTable::Agree(const std::string& wishes, TimePoint deadline) {
  const GroupIdentity& all = TheWorld().identity();
  milliseconds left = TimeLeft(deadline);
  if (auto ok = OpenMeetings(left); !ok) return ok.error();
  if (auto aborted = live_.WorldAborted()) return *std::move(aborted);
  store::Store& store = *world_.meeting_store;
  int number = world_.new_groups++;
  if (auto ok = store.Set(WishesKey(number, all.group_rank), wishes); !ok) return ok.error();
  if (auto ok = world_.meetings->Pass(left); !ok) {
    return Error(ok.error()).In("wait for all ranks of the world");
  }
  if (all.group_rank == 0) DeleteWishesBefore(number);
  std::vector<std::string> keys;
  for (int rank : all.global_ranks) keys.push_back(WishesKey(number, rank));
  auto said = store.MultiGet(keys, left);
  if (!said) return said.error();
  return CheckAlike(all.global_ranks, *said);
}

std::string GroupTable::WishesKey(int new_group, int global_rank) {
  return TheWorld().identity().key_prefix + "/new_group/" + std::to_string(new_group) + "/" +
         std::to_string(global_rank);
}

// Sets the name and the key prefix. They are the same on all members, even if
// these have created different other groups before.
void GroupTable::Name(GroupIdentity& identity) {
  std::string seed = Joined(identity.global_ranks) + ";" + identity.description;
  identity.name = NameOfGroup(seed, world_.names[seed]++);
  identity.key_prefix = TheWorld().identity().key_prefix + "/group/" + identity.name;
}

ProcessGroup* GroupTable::Add(std::unique_ptr<Group> group) {
  groups_.emplace_back(new ProcessGroup(std::move(group), *this));
  first_ = groups_.front().get();
  live_.Add(*groups_.back(), *groups_.back()->group_);
  return groups_.back().get();
}

void GroupTable::DestroyLast() {
  groups_.back()->group_->FinishQueued();  // whose calls Abort may end
  live_.Remove(*groups_.back());
  destroyed_.push_back(std::move(groups_.back()));
  groups_.pop_back();
  // Deletes before it releases, because callbacks of the last work may use group_.
  std::unique_ptr<Group>& group = destroyed_.back()->group_;
  delete group.get();
  static_cast<void>(group.release());
}

Group& GroupTable::TheWorld() { return GroupOf(*groups_.front()); }

void GroupTable::Clear() {
  if (!CheckHome()) return;
  while (groups_.size() > 1) DestroyLast();
  if (groups_.empty()) return;
  const GroupIdentity& all = TheWorld().identity();
  // Before the goodbye, because queued collectives may still use the store.
  TheWorld().FinishQueued();
  GivePlaceBack();
  if (!world_.place.agent_serves && all.world_size() > 1) {
    bool ends = EndsStore(world_.server.get(), world_.given);
    std::vector<int> awaited = all.global_ranks;
    std::erase_if(awaited, [&](int rank) { return world_.excluded.contains(rank); });
    const InterruptibleCall::Deferred deferred;  // of others, which still use the store
    milliseconds patience = live_.WorldAborted() ? kGoodbyesAfterAbort : kGoodbyes;
    SayGoodbye(TheWorld().store(), all, awaited, ends ? patience : milliseconds(0));
  }
  first_ = nullptr;
  static_cast<void>(world_.breakpoints.ReturnTerminal());
  live_.SetMeetings(nullptr);
  world_.meetings.reset();
  world_.meeting_store.reset();
  if (world_.file) LeaveFile(*world_.file, TheWorld().store());
  DestroyLast();
  world_ = {};
}

Result<void> GroupTable::Remove(const ProcessGroup& group) {
  auto found = std::find_if(groups_.begin(), groups_.end(),
                            [&](const auto& one) { return one.get() == &group; });
  if (found == groups_.end()) return Invalid(group.place_ + " is destroyed already");
  if (!CheckHome()) return {};
  if (found == groups_.begin()) {
    Clear();
    return {};
  }
  GroupIdentity identity = GroupOf(group).identity();
  std::rotate(found, found + 1, groups_.end());
  DestroyLast();
  if (identity.group_rank >= 0) ForgetKeysOf(identity);
  return {};
}

}  // namespace rankrun::comm

#include "comm/world/join_group.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/process/dumpable.h"
#include "base/roll_call.h"
#include "comm/core/time_left.h"
#include "comm/group/group_log.h"
#include "comm/group/store_barrier.h"
#include "comm/world/backend_table.h"
#include "comm/world/host_identity.h"
#include "comm/world/wishes.h"

namespace rankrun::comm {
namespace {

std::string MemberKey(const JoinGroupOptions& options, int group_rank) {
  return options.identity.key_prefix + "/member/" + std::to_string(group_rank);
}

// Describes the options that must be equal on all members.
std::string Wishes(const JoinGroupOptions& options) {
  std::string text = InWords(options.backend) + ", timeout " +
                     std::to_string(options.identity.timeout.count()) + " ms";
  if (options.connects_devices) text += ", a GPU to connect";
  if (options.identity.checks_all_calls) text += ", debug level DETAIL";
  if (options.algorithms == AlgorithmTable()) return text;
  return text + ", RANKRUN_ALGORITHMS " + FormatAlgorithms(options.algorithms);
}

std::unique_ptr<StoreBarrier> BarrierOf(store::Store& store, const GroupIdentity& identity) {
  return std::make_unique<StoreBarrier>(store, identity.key_prefix + "/barrier",
                                        identity.group_rank, identity.global_ranks);
}

// Publishes `reason` to the members that wait for this one, then returns it.
Error Refuse(StoreBarrier& barrier, const GroupIdentity& identity, Error reason) {
  barrier.Refuse(Error(reason).In(RanksInWords({identity.global_rank})));
  return reason;
}

// Adds the variable that names the backend.
Error WithSource(const Error& error, const JoinGroupOptions& options) {
  return options.backend_source.empty() ? error : Error(error).In(options.backend_source);
}

Result<BackendCreator> CreatorFor(const std::string& backend, const JoinGroupOptions& options) {
  auto creator = FindBackend(backend, options.plugin_folders);
  if (!creator) return WithSource(creator.error(), options);
  return creator;
}

// Returns the backends that the options name, if this member has that for CPU memory.
Result<DeviceMap> BackendsAskedFor(const JoinGroupOptions& options) {
  auto map = ParseDeviceMap(options.backend.name);
  if (!map) return WithSource(map.error(), options);
  if (auto ok = CheckNcclOptions(options.backend.nccl, *map); !ok) return ok.error();
  if (options.connects_devices && map->cuda.empty()) {
    return Error{ErrorCode::kInvalid, "device is a GPU, and the backend is \"" +
                                          FormatDeviceMap(*map) +
                                          "\": want one such as \"cpu:auto,cuda:nccl\""};
  }
  if (map->cpu == kAutoBackend) return map;
  if (auto creator = CreatorFor(map->cpu, options); !creator) return creator.error();
  return map;
}

// Makes the backend for memory of GPUs that the options name; null: they name none.
Result<std::unique_ptr<DeviceBackend>> MakeDeviceBackend(const std::string& backend,
                                                         store::Store& store,
                                                         const JoinGroupOptions& options) {
  if (backend.empty()) return std::unique_ptr<DeviceBackend>();
  auto create = FindDeviceBackend(backend, options.plugin_folders);
  if (!create) return WithSource(create.error(), options);
  const GroupIdentity& identity = options.identity;
  auto devices = (*create)({.global_ranks = identity.global_ranks,
                            .group_rank = identity.group_rank,
                            .store = store,
                            .key_prefix = identity.key_prefix,
                            .name = DisplayName(identity),
                            .options = options.backend.nccl,
                            .deaths = identity.deaths,
                            .connection = options.device_connection});
  if (!devices) return WithSource(devices.error(), options);
  return devices;
}

// Called before the barrier, because members that disagree on the world size
// would wait there for ranks that do not exist.
Result<void> CompareWorldSizes(store::Store& store, StoreBarrier& barrier,
                               const GroupIdentity& identity) {
  if (!identity.is_world()) return {};  // the keys of other groups contain their ranks
  std::string size = std::to_string(identity.world_size());
  std::string mine = size + " on " + RanksInWords({identity.global_rank});
  auto first = store.CompareSet(identity.key_prefix + "/world_size", "", mine);
  if (!first) return first.error();
  if (first->value.starts_with(size + " ")) return {};
  Error error{ErrorCode::kMismatch, "the world size is " + first->value + ", " + mine};
  barrier.Refuse(error);
  return error;
}

// Publishes the host and the options of this member and compares the options of
// all. Returns the host of each member.
Result<std::vector<std::string>> Compare(store::Store& store, StoreBarrier& barrier,
                                         const JoinGroupOptions& options) {
  const GroupIdentity& identity = options.identity;
  if (auto ok = CompareWorldSizes(store, barrier, identity); !ok) return ok.error();
  std::string mine = HostIdentity() + "\n" + Wishes(options);
  if (auto ok = store.Set(MemberKey(options, identity.group_rank), mine); !ok) return ok.error();
  if (auto ok = barrier.Pass(TimeLeft(options.deadline)); !ok) return ok.error();
  std::vector<std::string> keys;
  for (int r = 0; r < identity.world_size(); ++r) keys.push_back(MemberKey(options, r));
  auto members = store.MultiGet(keys, TimeLeft(options.deadline));
  if (!members) return members.error();
  std::vector<std::string> hosts;
  std::vector<std::string> wishes;
  for (const std::string& member : *members) {
    size_t end = member.find('\n');
    hosts.push_back(member.substr(0, end));
    wishes.push_back(member.substr(end + 1));
  }
  if (auto ok = CheckAlike(identity.global_ranks, wishes); !ok) return ok.error();
  return hosts;
}

// Returns the function that connects `backend`, if this member can use it with
// members on `hosts`.
Result<BackendCreator> Prepare(const std::string& backend, const std::vector<std::string>& hosts,
                               const JoinGroupOptions& options) {
  if (backend != kShmBackend && options.network_interface.empty()) {
    if (auto ok = CheckReachable(hosts, options.host); !ok) return ok.error();
  }
  return CreatorFor(backend, options);
}

Result<std::unique_ptr<Backend>> Connect(const BackendCreator& create, const std::string& backend,
                                         store::Store& store, const JoinGroupOptions& options,
                                         const std::vector<std::string>& hosts) {
  return create({
      .global_ranks = options.identity.global_ranks,
      .hosts = hosts,
      .group_rank = options.identity.group_rank,
      .store = store,
      .key_prefix = options.identity.key_prefix + "/" + backend,
      .network_interface = options.network_interface,
      .host = options.host,
      .timeout = TimeLeft(options.deadline),
      .deaths = options.identity.deaths,
      .checks_all_calls = options.identity.checks_all_calls,
      .algorithms = options.algorithms,
      .default_log_level = DefaultLogLevel(),
  });
}

// The part of a HostIdentity before the first '/' identifies the machine.
bool AreOfSeveralHosts(const std::vector<std::string>& members) {
  auto machine = [](const std::string& member) { return member.substr(0, member.find('/')); };
  return std::any_of(members.begin(), members.end(), [&](const std::string& member) {
    return machine(member) != machine(members.front());
  });
}

// Returns whether at least two members can share memory.
bool SomeShareAHost(std::vector<std::string> hosts) {
  std::erase_if(hosts, IsUnknownHost);
  std::sort(hosts.begin(), hosts.end());
  return std::adjacent_find(hosts.begin(), hosts.end()) != hosts.end();
}

// Describes why the members cannot share memory.
std::string WhatKeepsApart(const std::vector<std::string>& hosts) {
  if (std::any_of(hosts.begin(), hosts.end(), IsUnknownHost)) {
    return "a rank cannot tell which host it is on";
  }
  if (AreOfSeveralHosts(hosts)) return "the ranks are on several hosts";
  if (std::ranges::any_of(hosts, LacksSharedMemory)) {
    return "a rank has no memory to share: the system call memfd_create (Linux 3.17) is refused";
  }
  if (std::ranges::any_of(hosts, HidesFiles)) {
    return std::string("the process of a rank ") + kHiddenFiles;
  }
  return "the ranks are of several users or PID namespaces of one host";
}

}  // namespace

Choice ChooseBackend(const std::vector<std::string>& hosts) {
  bool same = std::all_of(hosts.begin(), hosts.end(),
                          [&](const std::string& host) { return host == hosts.front(); });
  if (same) return {.backend = kShmBackend, .why = "all ranks are on one host"};
  return {.backend = SomeShareAHost(hosts) ? kHierarchicalBackend : kTcpBackend,
          .why = WhatKeepsApart(hosts)};
}

Result<void> CheckReachable(const std::vector<std::string>& hosts, const std::string& address) {
  if (!AreOfSeveralHosts(hosts) || !address.starts_with("127.")) return {};
  return Error{ErrorCode::kInvalid,
               "the ranks are on several hosts, which cannot reach this one at " + address +
                   ": want GLOO_SOCKET_IFNAME set to the interface that they reach"};
}

Result<std::unique_ptr<Group>> JoinGroup(std::unique_ptr<store::Store>&& store,
                                         const JoinGroupOptions& options) {
  TimePoint since = MonotonicClock().Now();
  GroupIdentity identity = options.identity;
  std::string what = "join " + PlaceIn(identity);
  std::string waiting = what + ": wait for all ranks";
  auto barrier = BarrierOf(*store, identity);
  auto asked_for = BackendsAskedFor(options);
  if (!asked_for) return Refuse(*barrier, identity, asked_for.error()).In(what);
  auto devices = MakeDeviceBackend(asked_for->cuda, *store, options);
  if (!devices) return Refuse(*barrier, identity, devices.error()).In(what);
  auto hosts = Compare(*store, *barrier, options);
  if (!hosts) return Error(hosts.error()).In(waiting);
  Choice choice{.backend = asked_for->cpu, .why = "asked for"};
  if (choice.backend == kAutoBackend) choice = ChooseBackend(*hosts);
  auto creator = Prepare(choice.backend, *hosts, options);
  if (!creator) return Refuse(*barrier, identity, creator.error()).In(what);
  if (choice.backend != kShmBackend) {  // any member can use kShmBackend, so none can refuse it
    if (auto ok = barrier->Pass(TimeLeft(options.deadline)); !ok)
      return Error(ok.error()).In(waiting);
  }
  LogInfo(PlaceIn(identity) + ": backend " + choice.backend + ", as " + choice.why);
  auto backend = Connect(*creator, choice.backend, *store, options, *hosts);
  if (!backend) return std::move(backend).error().In(what + ": connect to the other ranks");
  identity.backend = FormatDeviceMap({.cpu = choice.backend, .cuda = asked_for->cuda});
  LogMade(identity, MonotonicClock().Now() - since);
  return std::make_unique<Group>(std::move(identity), std::move(store), std::move(barrier),
                                 *std::move(backend), *std::move(devices));
}

void RefuseToJoin(store::Store& store, const GroupIdentity& identity, const Error& reason) {
  static_cast<void>(Refuse(*BarrierOf(store, identity), identity, reason));
}

}  // namespace rankrun::comm

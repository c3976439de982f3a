#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/mesh.h>
#include <rankrun/subgroups.h>

#include "base/clock.h"
#include "base/result.h"
#include "comm/core/home_process.h"
#include "comm/group/group.h"
#include "comm/mesh/layout.h"
#include "comm/stream/connection.h"
#include "comm/world/breakpoint.h"
#include "comm/world/group_members.h"
#include "comm/world/live_groups.h"
#include "comm/world/refused_world.h"
#include "comm/world/rendezvous.h"

namespace rankrun::comm {

// Process groups of one context.
// Thread: one at a time; world() and MakeWorld any.
// Lifetime: as long as the process, and so are its ProcessGroups.
class GroupTable {
 public:
  // The context of Init has no name.
  explicit GroupTable(std::string context) : context_(std::move(context)) {}
  GroupTable(const GroupTable&) = delete;
  GroupTable& operator=(const GroupTable&) = delete;
  // Returns the table of a group, also of one that is destroyed.
  static GroupTable& Of(const ProcessGroup& group) { return group.table_; }

  ProcessGroup* world() const { return first_.load(); }
  Result<void> CheckHome() const;  // kInvalid: the world is that of this fork's parent
  // Errors of all: as JoinGroup.
  Result<ProcessGroup*> MakeWorld(const InitOptions& options);
  Result<ProcessGroup*> MakeGroup(const GroupOptions& options);
  Result<ProcessGroup*> Split(Group& parent, const std::vector<std::vector<int>>& splits,
                              const SubgroupOptions& options);
  Result<ProcessGroup*> Shrink(Group& parent, const std::vector<int>& excluded,
                               const SubgroupOptions& options);
  // Makes the groups of a mesh by one agreement of all ranks. Returns that of this rank
  // along each dimension; none for a rank that is not in the mesh. There is a world.
  Result<std::vector<ProcessGroup*>> MakeMesh(const Result<mesh::Layout>& layout,
                                              const MeshOptions& options,
                                              const std::string& device);
  // As the function of more_connections.h.
  Result<std::vector<std::unique_ptr<stream::Connection>>> ConnectAgain(
      const std::string& name, std::chrono::milliseconds timeout);
  // Returns whether this thread must stop for a debugger, then call GoOn of breakpoints().
  Result<bool> Breakpoint(const BreakpointCall& call);
  BreakpointState& breakpoints() { return world_.breakpoints; }
  // Ends the calls of a group, or of all groups with the world. Error: kInvalid, it is destroyed,
  // or this process is a fork. Thread: any.
  Result<void> Abort(const ProcessGroup& group, const std::string& reason);
  // Destroys all groups; nothing in a fork of their process.
  void Clear();
  // Destroys one group; the world means all groups. Error: kInvalid, it is destroyed already.
  Result<void> Remove(const ProcessGroup& group);

 private:
  // Time-out of the store, for connecting and for each reply, where nothing depends on it.
  static constexpr std::chrono::milliseconds kCleaning{5000};

  struct SubgroupCalls {
    int made = 0;        // calls of Split and Shrink
    int first_kept = 0;  // the keys of the calls before it are deleted
  };
  struct World {
    Environment place = {};
    std::string host = {};
    BackendWish backend = {};  // as requested: may be "auto"
    std::shared_ptr<store::HostedServer> server = {};
    std::optional<MeetingFile> file = {};  // that the world's store is in
    std::shared_ptr<Store> given = {};     // shared with the program; may be the server
    std::optional<Device> device = {};     // to connect in new groups
    // Connection for creating groups, opened with the first one. The world's own store would
    // delay it, because calls of other threads wait there for ranks.
    std::unique_ptr<store::Store> meeting_store = {};
    std::shared_ptr<StoreBarrier> meetings = {};  // of all ranks; live_ has it, too
    int new_groups = 0;                           // calls of MakeGroup that all ranks make
    int first_kept = 0;  // rank 0 only: the wishes of the calls before it are deleted
    std::map<std::string, int> names = {};                     // number of groups made, by seed
    std::map<std::string, SubgroupCalls> subgroup_calls = {};  // by the name of the parent
    std::set<int> excluded = {};                               // global ranks, by Shrink
    BreakpointState breakpoints = {};
  };

  Result<ProcessGroup*> MakeWorldAlone(const InitOptions& options);
  Result<std::chrono::milliseconds> CheckedTimeoutOf(const InitOptions& options) const;
  Error CountFailedInit(Error error);
  void KeepRefused(Meeting meeting, const Error& reason);
  void ForgetRefused();
  void GivePlaceBack();  // lets another program of this rank make the next world
  Group& TheWorld();
  Result<GroupIdentity> Identify(const GroupOptions& options);
  // Publishes `reason` to the other ranks, then returns it.
  Error Refuse(Error reason);
  // Chooses the backend, given the wishes for a new group.
  BackendWish BackendFor(const std::string& backend, const std::optional<NcclOptions>& nccl) const;
  // Joins the group on which all members have agreed; only adds it if this rank is no member.
  Result<ProcessGroup*> Enter(GroupIdentity identity, const BackendWish& backend,
                              TimePoint deadline, std::shared_ptr<void> device_connection = {});
  // Enters one group after the other; all or none.
  Result<std::vector<ProcessGroup*>> EnterAll(const std::vector<GroupIdentity>& identities,
                                              const BackendWish& backend, TimePoint deadline);
  // `connected`: the parent, if its connections of devices may serve the new group.
  Result<ProcessGroup*> MakeSubgroup(const GroupIdentity& parent, const Result<Subgroups>& groups,
                                     const SubgroupOptions& options, Group* connected);
  // Connects the GPUs of a new group's members, if the world has some. After an error
  // the group is gone.
  Result<ProcessGroup*> ConnectDevices(ProcessGroup* group, TimePoint deadline);
  void DeleteKeysOfCalls(const std::string& prefix, SubgroupCalls& calls);
  Error RefuseLocally(const GroupOptions& options, Error reason);
  Result<void> OpenMeetings(std::chrono::milliseconds timeout);
  Result<void> Agree(const std::string& wishes, TimePoint deadline);
  Result<bool> Hold(const BreakpointCall& call);
  std::string WishesKey(int new_group, int global_rank);
  void DeleteWishesBefore(int new_group);
  void ForgetKeysOf(const GroupIdentity& destroyed);
  // Deletes keys that no rank reads any more. Opens a connection for it, because a server that
  // cannot list its keys closes the connection (older PyTorch); the keys then stay.
  static void DeleteKeysOf(store::Store& store, const std::string& prefix);
  void Name(GroupIdentity& identity);
  ProcessGroup* Add(std::unique_ptr<Group> group);
  // Destroys the last one of groups_.
  void DestroyLast();

  const std::string context_;
  int generation_ = 0;  // of the next world: number of Inits so far, without invalid arguments
  World world_;
  RefusedWorld refused_;
  std::vector<std::unique_ptr<ProcessGroup>> groups_;  // the world first
  LiveGroups live_;                                    // the same
  // Programs may still hold references to them.
  std::vector<std::unique_ptr<ProcessGroup>> destroyed_;
  std::atomic<ProcessGroup*> first_ = nullptr;  // the world
  PerProcess<std::atomic<bool>> is_in_init_;    // a thread makes the world
};

}  // namespace rankrun::comm

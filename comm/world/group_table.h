#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

#include "base/clock.h"
#include "base/result.h"
#include "comm/group/group.h"
#include "comm/world/rendezvous.h"

namespace rankrun::comm {

// Process groups of this process. It is global, as in torch, because a process
// is one rank of one job, and code deep inside a program needs the groups.
// Thread: one at a time; world() any.
class GroupTable {
 public:
  // Returns the only table. It is never destroyed, because backends have static
  // objects of their own, and the order of destruction at exit is unknown. The
  // kernel closes the sockets.
  static GroupTable& Instance();

  ProcessGroup* world() const { return first_.load(); }
  // Errors of both: as Join.
  Result<ProcessGroup*> MakeWorld(const InitOptions& options);
  Result<ProcessGroup*> MakeGroup(const GroupOptions& options);
  // Destroys all groups.
  void Clear();
  // Destroys one group; the world means all groups. Error: kInvalid, `group` is
  // not in the table.
  Result<void> Remove(const ProcessGroup& group);

 private:
  struct World {
    Environment place = {};
    std::string host = {};
    std::string backend = {};  // as requested: may be "auto"
    std::unique_ptr<store::HostedServer> server = {};
    std::optional<MeetingFile> file = {};  // that the world's store is in
    std::shared_ptr<Store> given = {};     // shared with the program; may be the server
    // Connection for creating groups, opened with the first one. The world's
    // own store would delay it, because calls of other threads wait there for
    // ranks.
    std::unique_ptr<store::Store> meeting_store = {};
    std::unique_ptr<StoreBarrier> meetings = {};  // of all ranks
    int new_groups = 0;                           // calls of MakeGroup that all ranks make
    int first_kept = 0;  // rank 0 only: the wishes of the calls before it are deleted
    std::map<std::string, int> names = {};  // number of groups made, by seed
  };

  Error CountFailedInit(Error error);
  void KeepRefused(Meeting meeting);
  void ForgetRefused();
  Group& TheWorld();
  Result<GroupIdentity> Identify(const GroupOptions& options);
  // Publishes `reason` to the other ranks, then returns it.
  Error Refuse(Error reason);
  Error RefuseLocally(const GroupOptions& options, Error reason);
  Result<void> OpenMeetings(std::chrono::milliseconds timeout);
  Result<void> Agree(const std::string& wishes, TimePoint deadline);
  std::string WishesKey(int new_group, int global_rank);
  void DeleteWishesBefore(int new_group);
  void ForgetKeysOf(const GroupIdentity& destroyed);
  void Name(GroupIdentity& identity);
  ProcessGroup* Add(std::unique_ptr<Group> group);

  // Generation of the next world: number of calls of Init so far, without those
  // with invalid arguments.
  int generation_ = 0;
  World world_;
  // Where the ranks of a world that could not be made have met: those that come
  // late read the reason there. Until the next Init.
  struct RefusedWorld {
    std::unique_ptr<store::HostedServer> server = {};  // if this rank serves the store
    std::optional<MeetingFile> file = {};
    std::unique_ptr<store::Store> store = {};  // in `file`
  };
  RefusedWorld refused_;
  std::vector<std::unique_ptr<ProcessGroup>> groups_;  // the world first
  std::atomic<ProcessGroup*> first_ = nullptr;         // the world
};

}  // namespace rankrun::comm

#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

#include "base/clock.h"
#include "base/result.h"
#include "comm/group.h"
#include "comm/rendezvous.h"

namespace rankrun::comm {

// The process groups of this process: global because a process has one place
// in one job, and code deep in a program must find it, as in torch.
// Thread: one at a time; world() any.
class GroupTable {
 public:
  // Never destroyed: at exit the order against the backends' own static
  // objects is unknown, and the kernel closes sockets anyway.
  static GroupTable& Instance();

  ProcessGroup* world() const { return first_.load(); }
  // Errors: as Join.
  Result<ProcessGroup*> MakeWorld(const InitOptions& options);
  Result<ProcessGroup*> MakeGroup(const GroupOptions& options);
  void Clear();
  // Error: kInvalid, it is none of these.
  Result<void> Remove(const ProcessGroup& group);

 private:
  struct World {
    Environment place = {};
    std::string host = {};
    std::string backend = {};  // as asked for
    std::unique_ptr<store::HostedServer> server = {};
    std::shared_ptr<Store> given = {};  // shared with the program; it may be the server
    // For new groups, made with the first: calls of the world's own store would
    // wait for those of another thread, which wait for other ranks.
    std::unique_ptr<store::Store> meeting_store = {};
    std::unique_ptr<StoreBarrier> meetings = {};  // of all ranks
    int new_groups = 0;
    int first_kept = 0;  // rank 0 only: of `new_groups`, the keys of those before are deleted
    std::map<std::string, int> names = {};  // how many groups have been made, by seed
  };

  Error Counted(Error error);
  Group& TheWorld();
  Result<GroupIdentity> Identify(const GroupOptions& options);
  // The rank's own error, after the others have been told.
  Error Refuse(Error reason);
  Error RefuseLocally(const GroupOptions& options, Error reason);
  Result<void> OpenMeetings(std::chrono::milliseconds timeout);
  Result<void> Agree(const std::string& wishes, TimePoint deadline);
  std::string WishesKey(int new_group, int global_rank);
  void DeleteWishesBefore(int new_group);
  void ForgetKeysOf(const GroupIdentity& destroyed);
  void Name(GroupIdentity& identity);
  ProcessGroup* Add(std::unique_ptr<Group> group);

  int generation_ = 0;  // of the next world: how many calls of Init count before it
  World world_;
  std::vector<std::unique_ptr<ProcessGroup>> groups_;  // the world first
  std::atomic<ProcessGroup*> first_ = nullptr;         // of these
};

}  // namespace rankrun::comm

#pragma once

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
// Thread: one at a time.
class GroupTable {
 public:
  // Never destroyed: at exit the order against the backends' own static
  // objects is unknown, and the kernel closes sockets anyway.
  static GroupTable& Instance();

  ProcessGroup* world() const { return groups_.empty() ? nullptr : groups_.front().get(); }
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
    std::unique_ptr<StoreBarrier> meetings = {};  // of all ranks, for new groups
    int new_groups = 0;
    std::vector<std::string> seeds = {};  // of the names of groups made
  };

  Group& TheWorld();
  Result<GroupIdentity> Identify(const GroupOptions& options);
  Result<void> Agree(const std::string& wishes, TimePoint deadline);
  std::string NewName(const std::string& seed);
  void SayGoodbye();
  ProcessGroup* Add(std::unique_ptr<Group> group);

  int generation_ = 0;  // how many worlds this process has tried to make before
  World world_;
  std::vector<std::unique_ptr<ProcessGroup>> groups_;  // the world first
};

}  // namespace rankrun::comm

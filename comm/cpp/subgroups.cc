#include <utility>

#include <rankrun/subgroups.h>

#include "comm/core/throw.h"
#include "comm/group/group.h"
#include "comm/group/process_group_access.h"
#include "comm/world/group_table.h"

namespace rankrun {
namespace {

ProcessGroup& Made(const char* call, const ProcessGroup& parent, Result<ProcessGroup*> result) {
  if (!result) {
    comm::Throw(std::move(result).error().In(comm::CallIn(comm::GroupOf(parent), call)));
  }
  return **result;
}

}  // namespace

ProcessGroup& SplitGroup(ProcessGroup& parent, const std::vector<std::vector<int>>& splits,
                         const SubgroupOptions& options) {
  auto group = comm::GroupTable::Of(parent).Split(comm::GroupOf(parent), splits, options);
  return Made("SplitGroup", parent, std::move(group));
}

ProcessGroup& ShrinkGroup(ProcessGroup& parent, const std::vector<int>& excluded,
                          const SubgroupOptions& options) {
  auto group = comm::GroupTable::Of(parent).Shrink(comm::GroupOf(parent), excluded, options);
  return Made("ShrinkGroup", parent, std::move(group));
}

}  // namespace rankrun

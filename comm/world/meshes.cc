// The part of GroupTable that makes the groups of a mesh.

#include <chrono>
#include <utility>

#include "comm/core/time_left.h"
#include "comm/world/group_table.h"
#include "comm/world/join_group.h"
#include "comm/world/wishes.h"

namespace rankrun::comm {
namespace {

using mesh::Layout;

std::string InShape(const Layout& layout) {
  std::string text = "a mesh of ";
  for (size_t i = 0; i < layout.shape().size(); ++i) {
    text += (i == 0 ? "" : " x ") + std::to_string(layout.shape()[i]);
    if (!layout.names().empty()) text += " " + layout.names()[i];
  }
  return text;
}

std::string InWords(const Layout& layout) {
  return InShape(layout) + ", ranks " + Joined(layout.ranks());
}

Result<void> CheckFits(const Layout& layout, const GroupIdentity& world) {
  const auto needed = static_cast<int>(layout.ranks().size());
  if (needed > world.world_size()) {
    return Error{ErrorCode::kInvalid, InShape(layout) + " needs " + std::to_string(needed) +
                                          " ranks, and the world has " +
                                          std::to_string(world.world_size())};
  }
  for (int rank : layout.ranks()) {
    if (rank < world.world_size()) continue;
    return Error{ErrorCode::kInvalid, "the mesh has rank " + std::to_string(rank) +
                                          ", and the world " + std::to_string(world.world_size()) +
                                          " ranks: want ranks from 0 to " +
                                          std::to_string(world.world_size() - 1)};
  }
  return {};
}

std::string DescriptionOf(const Layout& layout, int dim) {
  if (layout.names().empty()) return "mesh_dim_" + std::to_string(dim);
  return "mesh_" + layout.names()[static_cast<size_t>(dim)];
}

// Returns the groups along each dimension that have this rank, which have no names yet;
// none if it is not in the mesh.
std::vector<GroupIdentity> GroupsWith(const Layout& layout, const GroupIdentity& world,
                                      std::chrono::milliseconds timeout) {
  std::vector<GroupIdentity> groups;
  for (int dim = 0; dim < layout.dims(); ++dim) {
    auto members = layout.GroupWith(world.global_rank, dim);
    if (!members) return {};
    GroupIdentity group = world;
    group.group_rank = IndexOf(*members, world.global_rank);
    group.global_ranks = *std::move(members);
    group.timeout = timeout;
    group.description = DescriptionOf(layout, dim);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

Result<std::vector<ProcessGroup*>> GroupTable::MakeMesh(const Result<Layout>& layout,
                                                        const MeshOptions& options,
                                                        const std::string& device) {
  if (auto ok = CheckHome(); !ok) return ok.error();
  const GroupIdentity& all = TheWorld().identity();
  auto timeout = EffectiveTimeout(options.timeout, all.timeout);
  const BackendWish backend = BackendFor(options.backend, options.nccl);
  Result<void> fits = layout ? CheckFits(*layout, all) : layout.error();
  if (fits && !timeout) fits = timeout.error();
  if (fits && device == "cuda" && !HasGpus(backend.name)) {
    fits = Error{ErrorCode::kInvalid, "device is \"cuda\", and the backend \"" + backend.name +
                                          "\": want one such as \"cpu:auto,cuda:nccl\""};
  }
  if (!fits) return Refuse(fits.error());
  TimePoint deadline = std::chrono::steady_clock::now() + *timeout;
  const std::string wishes =
      InWords(*layout) + ", device " + device + ", " + OptionsInWords(backend, *timeout, "");
  if (auto ok = Agree(wishes, deadline); !ok) return ok.error();
  const bool is_the_world = layout->dims() == 1 && layout->ranks() == all.global_ranks &&
                            *timeout == all.timeout && backend.name == world_.backend.name &&
                            !options.nccl;
  if (is_the_world) return std::vector{world()};
  // All names at once, so that a failure along one dimension consumes the same names on
  // all ranks.
  std::vector<GroupIdentity> identities = GroupsWith(*layout, all, *timeout);
  for (GroupIdentity& identity : identities) Name(identity);
  return EnterAll(identities, backend, deadline);
}

Result<std::vector<ProcessGroup*>> GroupTable::EnterAll(
    const std::vector<GroupIdentity>& identities, const BackendWish& backend, TimePoint deadline) {
  std::vector<ProcessGroup*> groups;
  for (size_t i = 0; i < identities.size(); ++i) {
    auto group = Enter(identities[i], backend, deadline);
    if (group) {
      groups.push_back(*group);
      continue;
    }
    for (size_t later = i + 1; later < identities.size(); ++later) {
      RefuseToJoin(TheWorld().store(), identities[later], group.error());
    }
    for (size_t made = 0; made < groups.size(); ++made) DestroyLast();
    return std::move(group).error();
  }
  return groups;
}

}  // namespace rankrun::comm

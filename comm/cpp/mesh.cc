#include <algorithm>
#include <utility>

#include <rankrun/distributed.h>
#include <rankrun/mesh.h>

#include "comm/core/throw.h"
#include "comm/group/group.h"
#include "comm/group/process_group_access.h"
#include "comm/mesh/layout.h"
#include "comm/world/contexts.h"
#include "comm/world/group_table.h"

namespace rankrun {
namespace comm {

struct MeshState {
  DeviceType device;
  mesh::Layout layout;
  int global_rank;
  std::vector<ProcessGroup*> groups;  // by dimension; empty: this rank is not in the mesh
  MeshOptions options;                // of groups that are made later
};

}  // namespace comm

namespace {

using comm::mesh::Layout;

[[noreturn]] void Fail(const char* call, Error error) { comm::Throw(std::move(error).In(call)); }

Error Invalid(const std::string& message) { return {ErrorCode::kInvalid, message}; }

Result<DeviceType> DeviceIn(const std::string& text) {
  if (text == "cpu") return DeviceType::kCpu;
  if (text == "cuda") return DeviceType::kCuda;
  return Invalid("device is \"" + text + "\": want cpu or cuda, without an index");
}

Result<Layout> LayoutOf(const std::vector<int>& shape, const MeshOptions& options) {
  if (options.ranks.empty()) return Layout::Make(shape, options.names);
  return Layout::Make(shape, options.ranks, options.names);
}

// Returns the number of a dimension.
size_t IndexOf(const Layout& layout, const MeshDim& dim, const char* call) {
  if (dim.name()) {
    auto found = layout.DimOf(*dim.name());
    if (!found) Fail(call, std::move(found).error());
    return static_cast<size_t>(*found);
  }
  if (!dim.number() && layout.dims() == 1) return 0;
  const std::string wanted =
      "want a number from 0 to " + std::to_string(layout.dims() - 1) + ", or a name";
  if (!dim.number()) {
    Fail(call, Invalid("the mesh has " + std::to_string(layout.dims()) + " dimensions: " + wanted));
  }
  if (*dim.number() < 0 || *dim.number() >= layout.dims()) {
    Fail(call, Invalid("there is no dimension " + std::to_string(*dim.number()) + ": " + wanted));
  }
  return static_cast<size_t>(*dim.number());
}

void CheckMember(const comm::MeshState& state, const char* call) {
  if (!state.groups.empty()) return;
  Fail(call, Invalid("global rank " + std::to_string(state.global_rank) + " is not in the mesh"));
}

// Makes the world of a program that has none.
void InitFor(const std::string& device, const MeshOptions& options) {
  InitOptions init;
  if (options.timeout) init.timeout = *options.timeout;
  if (options.nccl) init.nccl = *options.nccl;
  if (device == "cuda") init.backend = "cpu:auto,cuda:nccl";
  if (!options.backend.empty()) init.backend = options.backend;
  Init(init);
}

// Fails unless each group is the one along its dimension that has this rank, and all are
// of one context.
Result<void> CheckGroups(const std::vector<ProcessGroup*>& groups, const Layout& layout,
                         int global_rank, DeviceType device) {
  if (static_cast<int>(groups.size()) != layout.dims()) {
    return Invalid("the mesh has " + std::to_string(layout.dims()) + " dimensions, and there are " +
                   std::to_string(groups.size()) + " groups: want one for each");
  }
  for (int dim = 0; dim < layout.dims(); ++dim) {
    const ProcessGroup& group = *groups[static_cast<size_t>(dim)];
    const std::string name = "the group \"" + group.name() + "\" ";
    if (&comm::GroupTable::Of(group) != &comm::GroupTable::Of(*groups.front())) {
      return Invalid(name + "is of another context than the first one");
    }
    if (device == DeviceType::kCuda && !comm::GroupOf(group).has_devices()) {
      return Invalid(name + "has no backend for GPU memory, and device is \"cuda\"");
    }
    auto along = layout.GroupWith(global_rank, dim);
    if (along && *along == group.global_ranks()) continue;
    return Invalid(name + "is not the one along dimension " + std::to_string(dim) +
                   " of the mesh that has this rank");
  }
  return {};
}

thread_local std::vector<DeviceMesh> current_meshes;

}  // namespace

// Makes handles.
class MeshFactory {
 public:
  static DeviceMesh Make(DeviceType device, Layout layout, int global_rank,
                         std::vector<ProcessGroup*> groups, const MeshOptions& options) {
    return DeviceMesh(std::make_shared<comm::MeshState>(
        comm::MeshState{device, std::move(layout), global_rank, std::move(groups), options}));
  }
};

DeviceType DeviceMesh::device_type() const { return state_->device; }
const std::vector<int>& DeviceMesh::shape() const { return state_->layout.shape(); }
const std::vector<int>& DeviceMesh::ranks() const { return state_->layout.ranks(); }
const std::vector<std::string>& DeviceMesh::names() const { return state_->layout.names(); }
int DeviceMesh::global_rank() const { return state_->global_rank; }

std::optional<std::vector<int>> DeviceMesh::coordinate() const {
  return state_->layout.CoordinateOf(state_->global_rank);
}

int DeviceMesh::local_rank(const MeshDim& dim) const {
  constexpr char kCall[] = "DeviceMesh::local_rank";
  size_t index = IndexOf(state_->layout, dim, kCall);
  CheckMember(*state_, kCall);
  return (*coordinate())[index];
}

ProcessGroup& DeviceMesh::group(const MeshDim& dim) const {
  constexpr char kCall[] = "DeviceMesh::group";
  size_t index = IndexOf(state_->layout, dim, kCall);
  CheckMember(*state_, kCall);
  return *state_->groups[index];
}

std::vector<ProcessGroup*> DeviceMesh::groups() const {
  CheckMember(*state_, "DeviceMesh::groups");
  return state_->groups;
}

DeviceMesh DeviceMesh::Slice(const std::vector<std::string>& names) const {
  constexpr char kCall[] = "DeviceMesh::Slice";
  auto slice = state_->layout.Slice(names, state_->global_rank);
  if (!slice) Fail(kCall, std::move(slice).error());
  std::vector<ProcessGroup*> groups;
  for (const std::string& name : slice->names()) groups.push_back(&group(name));
  return MeshFactory::Make(state_->device, *std::move(slice), state_->global_rank,
                           std::move(groups), state_->options);
}

DeviceMesh DeviceMesh::Flatten(const std::string& name) const {
  constexpr char kCall[] = "DeviceMesh::Flatten";
  CheckMember(*state_, kCall);
  comm::GroupOf(*state_->groups.front());  // throws if it is destroyed
  if (name.empty() && names().empty()) {
    Fail(kCall, Invalid("the dimensions have no names: want a name for the new one"));
  }
  std::string all = name;
  for (size_t i = 0; name.empty() && i < names().size(); ++i) {
    all += (i == 0 ? "" : "_") + names()[i];
  }
  auto flat = state_->layout.Flatten(all);
  if (!flat) Fail(kCall, std::move(flat).error());
  std::vector<ProcessGroup*> groups = state_->groups;
  if (dims() > 1) {
    auto& table = comm::GroupTable::Of(*groups.front());
    auto group = table.MakeGroup({.ranks = flat->ranks(),
                                  .sort_ranks = false,
                                  .timeout = state_->options.timeout,
                                  .backend = state_->options.backend,
                                  .description = "mesh_" + all,
                                  .use_local_synchronization = true,
                                  .nccl = state_->options.nccl});
    if (!group) Fail(kCall, std::move(group).error());
    groups = {*group};
  }
  return MeshFactory::Make(state_->device, *std::move(flat), state_->global_rank, std::move(groups),
                           state_->options);
}

DeviceMesh InitDeviceMesh(const std::string& device, const std::vector<int>& shape,
                          const MeshOptions& options) {
  constexpr char kCall[] = "InitDeviceMesh";
  comm::GroupTable& table = comm::DefaultContext();
  if (table.world() == nullptr) InitFor(device, options);
  auto type = DeviceIn(device);
  auto layout = LayoutOf(shape, options);
  if (!type) layout = type.error();
  auto groups = table.MakeMesh(layout, options, device);
  if (!groups) Fail(kCall, std::move(groups).error());
  return MeshFactory::Make(*type, *std::move(layout), table.world()->global_rank(),
                           *std::move(groups), options);
}

DeviceMesh MeshFromGroups(const std::string& device, const std::vector<ProcessGroup*>& groups,
                          const std::vector<int>& shape, const MeshOptions& options) {
  constexpr char kCall[] = "MeshFromGroups";
  auto type = DeviceIn(device);
  if (!type) Fail(kCall, std::move(type).error());
  bool has_null = std::find(groups.begin(), groups.end(), nullptr) != groups.end();
  if (groups.empty() || has_null) Fail(kCall, Invalid("there is no group: want at least one"));
  MeshOptions complete = options;
  std::vector<int> complete_shape = shape;
  if (shape.empty() && options.ranks.empty() && groups.size() == 1) {
    complete.ranks = groups.front()->global_ranks();
    complete_shape = {static_cast<int>(complete.ranks.size())};
  } else if (shape.empty()) {
    Fail(kCall,
         Invalid("there is no shape: want one size per group, " + std::to_string(groups.size())));
  }
  auto layout = LayoutOf(complete_shape, complete);
  if (!layout) Fail(kCall, std::move(layout).error());
  const int rank = groups.front()->global_rank();
  if (auto ok = CheckGroups(groups, *layout, rank, *type); !ok) Fail(kCall, ok.error());
  return MeshFactory::Make(*type, *std::move(layout), rank, groups, options);
}

MeshScope::MeshScope(const DeviceMesh& mesh) { current_meshes.push_back(mesh); }
MeshScope::~MeshScope() { current_meshes.pop_back(); }

DeviceMesh MeshScope::Current() {
  if (current_meshes.empty()) Fail("MeshScope::Current", Invalid("no mesh is current"));
  return current_meshes.back();
}

}  // namespace rankrun

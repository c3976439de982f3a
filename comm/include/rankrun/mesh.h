#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rankrun/backend_options.h>
#include <rankrun/call_options.h>
#include <rankrun/export.h>
#include <rankrun/process_group.h>
#include <rankrun/tensor.h>

// Ranks in a grid, with a process group along each dimension: such as data parallelism
// across hosts and tensor parallelism inside.
// Source: torch.distributed.device_mesh.
namespace rankrun {

namespace comm {
struct MeshState;
}

// Dimension of a mesh, by its number from 0 or by its name. None: the only one.
class MeshDim {
 public:
  MeshDim() = default;
  MeshDim(int number) : number_(number) {}
  MeshDim(const char* name) : name_(name) {}
  MeshDim(std::string name) : name_(std::move(name)) {}

  const std::optional<int>& number() const { return number_; }
  const std::optional<std::string>& name() const { return name_; }

 private:
  std::optional<int> number_;
  std::optional<std::string> name_;
};

// Handle of a mesh; copies refer to the same one. Destroy of the world destroys its groups.
// Errors: DistError for a dimension that it does not have.
// Thread: any; Flatten as NewGroup.
class RANKRUN_API DeviceMesh {
 public:
  DeviceType device_type() const;
  const std::vector<int>& shape() const;
  const std::vector<int>& ranks() const;          // global, in row-major order
  const std::vector<std::string>& names() const;  // of the dimensions; empty: they have none
  int dims() const { return static_cast<int>(shape().size()); }

  int global_rank() const;                             // of this process
  std::optional<std::vector<int>> coordinate() const;  // of this process; none: not in the mesh
  // All throw DistError on a rank that is not in the mesh.
  int local_rank(const MeshDim& dim = {}) const;  // position along the dimension
  ProcessGroup& group(const MeshDim& dim = {}) const;
  std::vector<ProcessGroup*> groups() const;  // by dimension

  // Returns the part of the mesh with these dimensions, in the order of the mesh, that has
  // this process. Makes no group. Throws DistError for unknown names, and on a rank that is
  // not in the mesh.
  DeviceMesh Slice(const std::vector<std::string>& names) const;
  // Returns the ranks of this mesh in one dimension, with a new group unless it has one
  // dimension already. All ranks of the mesh call it; those of other slices may do so at
  // another time. `name`: empty, those of the dimensions with '_' between them.
  // Errors: as NewGroup; DistError without a name for a mesh without names.
  DeviceMesh Flatten(const std::string& name = {}) const;

 private:
  friend class MeshFactory;

  explicit DeviceMesh(std::shared_ptr<const comm::MeshState> state) : state_(std::move(state)) {}

  std::shared_ptr<const comm::MeshState> state_;
};

struct MeshOptions {
  std::vector<std::string> names = {};   // of the dimensions
  std::vector<int> ranks = {};           // global, in row-major order; empty: 0, 1, 2 ...
  Timeout timeout = {};                  // of the groups' operations; no value: the world's
  std::string backend = {};              // empty, or with RANKRUN_BACKEND: as for the world
  std::optional<NcclOptions> nccl = {};  // no value: as the world's
};

// Makes a mesh and its groups, for the world of Init, which it makes with these options if
// there is none. All ranks of the world call it with the same arguments. `device`: "cpu" or
// "cuda", which needs a backend for GPU memory. A mesh of the whole world in one dimension
// has the world as its group, unless its options differ.
// Thread: as NewGroup.
// Errors: as NewGroup; DistError for a shape that the world is too small for, or another
// device. A rank that fails along one dimension has no mesh; the other ranks of its groups
// fail, too, but ranks outside of them may have one.
RANKRUN_API DeviceMesh InitDeviceMesh(const std::string& device, const std::vector<int>& shape,
                                      const MeshOptions& options = {});

// Makes a mesh of groups that exist, of one context, one along each dimension. Without a
// shape, one group is the whole mesh. Calls no other rank. The timeout, backend and nccl of
// `options` are for Flatten.
// Throws DistError for groups that do not fit the mesh or the device.
RANKRUN_API DeviceMesh MeshFromGroups(const std::string& device,
                                      const std::vector<ProcessGroup*>& groups,
                                      const std::vector<int>& shape = {},
                                      const MeshOptions& options = {});

// Makes a mesh the current one of this thread until the end of the scope. Scopes end in
// their thread, the innermost first.
class RANKRUN_API MeshScope {
 public:
  explicit MeshScope(const DeviceMesh& mesh);
  MeshScope(const MeshScope&) = delete;
  MeshScope& operator=(const MeshScope&) = delete;
  ~MeshScope();

  // Returns the mesh of the innermost scope. Throws DistError if there is none.
  static DeviceMesh Current();
};

}  // namespace rankrun

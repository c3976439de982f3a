#pragma once

#include <string>

#include <rankrun/distributed.h>
#include <rankrun/export.h>
#include <rankrun/process_group.h>

namespace rankrun {

// A world beside that of Init, with its own ranks, backend, time-out, groups and
// failures; for a library inside a program, or for a part of the ranks:
//
//   rankrun::Context io("io", {.rank = writer, .world_size = writers, .store = store});
//   io.World().AllReduce(written);
//
// A process is one rank of a context. Several contexts may meet in one store; a
// name stands for one set of ranks there. Without an agent, a context whose rank 0
// is not rank 0 of the job needs a `store` or a port of its own.
// Thread: any, one at a time for a context. Several threads may use, make and
// destroy different contexts.
// Lifetime: ends before main returns. A name keeps some memory for good.
class RANKRUN_API Context {
 public:
  // Joins the world of the context, as Init does. `name` has letters, digits, '_',
  // '-' or '.', and is the same on all ranks. All ranks make the contexts of one
  // name the same number of times; failed ones count as in Init.
  // Errors: those of Init; DistError for a bad name, or if this process has a
  // context of this name.
  explicit Context(const std::string& name, const InitOptions& options = {});
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  // Destroys the groups, as Destroy() does.
  ~Context();

  const std::string& name() const { return name_; }
  // Throws DistError after Destroy(World()).
  ProcessGroup& World() const;
  // As rankrun::NewGroup, for ranks of this world.
  ProcessGroup& NewGroup(const GroupOptions& options);

 private:
  const std::string name_;
  comm::GroupTable& table_;
};

}  // namespace rankrun

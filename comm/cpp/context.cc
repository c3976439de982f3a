#include <utility>

#include <rankrun/context.h>

#include "comm/core/throw.h"
#include "comm/world/contexts.h"

namespace rankrun {
namespace {

std::string Called(const std::string& name) { return "Context \"" + name + "\""; }

comm::GroupTable& Open(const std::string& name) {
  auto table = comm::OpenContext(name);
  if (!table) comm::Throw(std::move(table).error().In("Context"));
  return **table;
}

}  // namespace

Context::Context(const std::string& name, const InitOptions& options)
    : name_(name), table_(Open(name)) {
  try {
    auto world = table_.MakeWorld(options);
    if (!world) comm::Throw(std::move(world).error().In(Called(name_)));
  } catch (...) {
    comm::CloseContext(name_);
    throw;
  }
}

Context::~Context() {
  if (table_.CheckHome()) comm::CloseContext(name_);  // else a fork, which ends nothing
}

ProcessGroup& Context::World() const {
  ProcessGroup* world = table_.world();
  if (world == nullptr) {
    comm::Throw(
        {ErrorCode::kInvalid, Called(name_) + ": its world is destroyed: want a new Context"});
  }
  return *world;
}

ProcessGroup& Context::NewGroup(const GroupOptions& options) {
  World();
  auto group = table_.MakeGroup(options);
  if (!group) comm::Throw(std::move(group).error().In(Called(name_) + ": NewGroup"));
  return **group;
}

}  // namespace rankrun

#include <utility>

#include <rankrun/gpu.h>

#include "comm/core/current_stream.h"
#include "comm/core/throw.h"
#include "comm/group/group.h"
#include "comm/group/process_group_access.h"

namespace rankrun {

void* SetStream(void* stream) { return std::exchange(comm::CurrentStream(), stream); }

RegisteredMemory::RegisteredMemory(ProcessGroup& group, const Tensor& memory) {
  comm::Group& members = comm::GroupOf(group);
  auto registration = members.Register(memory);
  if (!registration) {
    comm::Throw(std::move(registration).error().In(comm::CallIn(members, "RegisteredMemory")));
  }
  registration_ = *std::move(registration);
}

}  // namespace rankrun

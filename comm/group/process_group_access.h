#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rankrun/process_group.h>

#include "base/result.h"

namespace rankrun::comm {

class Group;
struct GroupIdentity;

// Returns the implementation of a public group for `call`. Throws DistError if the group is
// destroyed, or if this process is a fork of its rank.
Group& GroupOf(const ProcessGroup& group, const char* call = __builtin_FUNCTION());

// Returns the error of a call in a fork of the group's rank.
Error ErrorOfFork(const Group& group);

// Returns the members of a group, also in a fork. Throws DistError if it is destroyed.
const GroupIdentity& IdentityOf(const ProcessGroup& group);

// Returns the beginning of the errors of a call: "Send of the world process
// group, rank 0 of 2".
std::string CallIn(const Group& group, const std::string& operation);

// Returns a program's tag, which is below kObjectTags. Throws DistError if it
// is negative.
uint64_t CheckedTag(const Group& group, const char* operation, int tag);

// One message of a batch; a receive may accept any source.
struct BatchMessage {
  bool is_send;
  Tensor tensor;
  Source peer;
  int tag;
  bool can_receive = true;  // into the tensor
};
// Starts all messages and returns one Work for each. If one of them is invalid,
// throws before any is started.
std::vector<Work> StartAll(ProcessGroup& members, std::span<const BatchMessage> messages);

}  // namespace rankrun::comm

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rankrun/process_group.h>

namespace rankrun::comm {

class Group;

// Returns the implementation of a public group. Throws DistError if the group is
// destroyed.
Group& GroupOf(const ProcessGroup& group);

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
};
// Starts all messages and returns one Work for each. If one of them is invalid,
// throws before any is started.
std::vector<Work> StartAll(ProcessGroup& members, std::span<const BatchMessage> messages);

}  // namespace rankrun::comm

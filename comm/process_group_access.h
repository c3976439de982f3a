#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rankrun/process_group.h>

namespace rankrun::comm {

class Group;

// What is behind a public group, for the library's other parts.
Group& GroupOf(ProcessGroup& group);

// "Send of the world process group, rank 0 of 2": how the errors of a call begin.
std::string CallIn(const Group& group, const std::string& operation);

// A tag of a program, below kObjectTags. Throws DistError if it is negative.
uint64_t CheckedTag(const Group& group, const char* operation, int tag);

// A message of a batch; a receive may be from anyone.
struct BatchMessage {
  bool is_send;
  Tensor tensor;
  Source peer;
  int tag;
};
// One Work per message. Throws before any is begun if one of them is wrong.
std::vector<Work> StartAll(ProcessGroup& members, std::span<const BatchMessage> messages);

}  // namespace rankrun::comm

#pragma once

#include <rankrun/process_group.h>

namespace rankrun::comm {

class Group;

// What is behind a public group, for the library's other parts.
Group& GroupOf(ProcessGroup& group);

}  // namespace rankrun::comm

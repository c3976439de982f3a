#pragma once

#include <string>

#include "base/result.h"
#include "comm/world/group_table.h"

namespace rankrun::comm {

// Tables of process groups of this process. They are global, as in torch, because
// a process is one rank of one job, and code deep inside a program needs the
// groups. They are never destroyed, because backends have static objects of their
// own, and the order of destruction at exit is unknown. The kernel closes the
// sockets.
// Thread: any.

// Returns the table of Init.
GroupTable& DefaultContext();

// Returns the table of a new context. The table is that of earlier contexts of
// this name, which counts the worlds that ranks have made by it.
// Error: kInvalid, the name is wrong or that of an open context, also of one that was open
// when this process was forked.
Result<GroupTable*> OpenContext(const std::string& name);
// Destroys the groups of the context; its name is free afterwards.
void CloseContext(const std::string& name);

// Returns whether Init or a context has a world.
bool AnyWorld();

}  // namespace rankrun::comm

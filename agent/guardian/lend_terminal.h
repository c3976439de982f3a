#pragma once

#include <sys/types.h>

namespace rankrun::agent {

// Lends the terminal at descriptor 0, whose foreground process this one is, to a process of
// another session: sends its path through `pipe`, a descriptor of that process, and passes
// Ctrl-C on as SIGINT. Closes `report_fd` once the path is sent, and ends this process, which
// is a child of the guardian, when the other one closes the pipe.
// Returns only an error, as errno.
int LendTerminal(pid_t process, int pipe, int report_fd);

}  // namespace rankrun::agent

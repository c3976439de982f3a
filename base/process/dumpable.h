#pragma once

namespace rankrun {

// Why others cannot open the files of a process for which HidesProcFiles is true, after "a process
// that".
constexpr const char kHiddenFiles[] =
    "is not dumpable: its program cannot be read or has capabilities, or it has changed its user "
    "or called prctl, so that no other process can open its files in /proc";

// Returns whether the kernel keeps other processes of this user from opening the files of this one
// in /proc: it is not dumpable, and, as they probably are like it, they have no CAP_SYS_PTRACE.
// Source: ptrace(2), "Ptrace access mode checking"; prctl(2), PR_SET_DUMPABLE.
bool HidesProcFiles();

}  // namespace rankrun

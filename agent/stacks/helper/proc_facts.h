#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/stacks/process_stacks.h"

namespace rankrun::agent {

// Facts of /proc that need no stop of the process.

// Reads name, state and threads of a process, without frames. The main thread comes first.
// `note` says why there are none, if the process is gone or has ended.
ProcessStacks ReadProcFacts(pid_t pid);

// Returns the ids of all threads, the main one first; empty if there is no such process.
std::vector<pid_t> ThreadsOf(pid_t pid);

// Returns the state letter of a thread; '?' if there is no such thread.
char StateOfThread(pid_t pid, pid_t tid);

// A process that traces another one, which can have one tracer only.
struct OtherTracer {
  pid_t pid = 0;
  std::string name = {};
};
// Returns the tracer of a thread; nothing if there is none.
std::optional<OtherTracer> TracerOf(pid_t tid);
std::string TracerNote(const OtherTracer& tracer);

// Returns why a tracer without permission gets no frames, and how to allow it. `yama_scope` is
// the content of /proc/sys/kernel/yama/ptrace_scope, empty if there is none. Pure.
std::string PermissionNote(std::string_view yama_scope);
std::string PermissionNote();

// Name and state in a line of /proc/<pid>/stat: "4711 (a b) S ...". Pure.
struct ProcStat {
  std::string name;
  char state = '?';
};
ProcStat ParseStat(std::string_view line);

// The system call in a line of /proc/<pid>/task/<tid>/syscall. Pure.
struct SystemCall {
  std::string name;     // empty: none, or an unknown one
  int descriptor = -1;  // its first argument, if that is a descriptor
  uint64_t path = 0;    // address of its path; 0: it has none
};
SystemCall ParseSystemCall(std::string_view line);

}  // namespace rankrun::agent

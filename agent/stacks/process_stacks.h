#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rankrun::agent {

// One function of a stack.
struct StackFrame {
  std::string function;  // empty: unknown
  std::string file;      // source; empty: unknown
  int line = 0;          // 0: unknown
  std::string module;    // file with the code, of native frames
  // Address of the store that a function of torch.distributed makes: "127.0.0.1:12355"; or empty.
  std::string address = {};

  bool operator==(const StackFrame&) const = default;
};

struct ThreadStack {
  pid_t tid = 0;
  std::string name = {};
  char state = '?';                      // of /proc: R, S, D, T, t, Z
  std::string wait_channel = {};         // function of the kernel; empty: unknown
  std::string system_call = {};          // "read", "futex"; empty: none or unknown
  std::string system_call_file = {};     // behind its descriptor; empty: none or unknown
  std::vector<StackFrame> native = {};   // innermost first
  std::vector<StackFrame> python = {};   // likewise
  std::vector<std::string> kernel = {};  // functions of the kernel, if it shows them

  bool operator==(const ThreadStack&) const = default;
};

// The stacks of one process, as far as they could be read.
struct ProcessStacks {
  pid_t pid = 0;
  std::string name = {};
  char state = '?';
  std::string note = {};                  // why there are no frames, or not all; empty: complete
  std::string python_note = {};           // why there are no Python frames of a Python process
  std::string interpreter = {};           // module of CPython; empty: not a Python process
  int64_t stopped_us = 0;                 // how long the process was stopped
  std::vector<ThreadStack> threads = {};  // the main thread first

  bool operator==(const ProcessStacks&) const = default;
};

// Limits of one report, which keep torn memory and huge processes bounded.
constexpr size_t kMaxStackThreads = 512;
constexpr size_t kMaxStackFrames = 128;
constexpr size_t kMaxStackText = 256;  // bytes of each text

}  // namespace rankrun::agent

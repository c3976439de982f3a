#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/stacks/helper/python_layout.h"
#include "agent/stacks/helper/remote_memory.h"
#include "agent/stacks/process_stacks.h"

namespace rankrun::agent {

// The Python frames of one thread.
struct PythonThread {
  uint64_t id = 0;      // pthread_self()
  pid_t native_id = 0;  // thread id of the kernel; 0: this version does not store it
  std::vector<StackFrame> frames = {};  // innermost first
};

// Reads Python frames from the memory of a stopped process. Memory that makes no sense ends
// the frames of a thread; loops and lengths are bounded.
class PythonReader {
 public:
  // `is_late` says that reading must end; the frames are incomplete then.
  PythonReader(const RemoteMemory& memory, const PythonLayout& layout,
               std::function<bool()> is_late)
      : memory_(memory), layout_(layout), is_late_(std::move(is_late)) {}

  // `runtime` is the address of _PyRuntime.
  std::vector<PythonThread> Read(uint64_t runtime);

 private:
  // A code object. Threads often share theirs, so that each is read once.
  struct Code {
    StackFrame frame;  // without its line
    int first_line;
    uint64_t lines;  // address of the table
  };

  PythonThread ReadThread(uint64_t thread);
  std::vector<StackFrame> ReadFrames(uint64_t frame);
  std::optional<StackFrame> ReadFrame(uint64_t address, std::span<const char> frame);
  const Code& CodeAt(uint64_t address);
  int LineOf(const Code& code, uint64_t address, std::span<const char> frame) const;
  std::string TextAt(uint64_t address) const;
  std::string StoreAddress(uint64_t frame) const;

  const RemoteMemory& memory_;
  const PythonLayout layout_;
  const std::function<bool()> is_late_;
  std::map<uint64_t, Code> codes_;  // by address
};

// Returns the text of `characters` of 1 (Latin-1), 2 or 4 bytes in UTF-8. Cuts it to
// kMaxStackText bytes. Pure.
std::string Utf8Of(std::span<const char> characters, int width);

}  // namespace rankrun::agent

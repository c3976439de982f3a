#include "comm/core/call_stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/auxv.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace rankrun::comm {
namespace {

constexpr int kMaxFrames = 64;

std::string InHex(uintptr_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "+0x%zx", static_cast<size_t>(number));
  return text;
}

// Returns the name in C++, or unchanged if it is none.
std::string Demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return text == nullptr ? name : text.get();
}

// Whether the frame is in the program itself, in a function without a dynamic symbol.
bool IsNamelessInProgram(const Dl_info& frame, const Dl_info& program) {
  return frame.dli_sname == nullptr && frame.dli_fbase == program.dli_fbase;
}

// Returns the object that the kernel has started.
Dl_info Program() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(getauxval(AT_PHDR)), &info);
  return info;
}

// `frame` is a return address. The byte before it belongs to the call, even where the
// call is the last instruction of its function. Notes in `is_nameless` whether the program
// could give it a name.
std::string InWords(void* frame, const Dl_info& program, bool& is_nameless) {
  auto address = reinterpret_cast<uintptr_t>(frame) - 1;
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || info.dli_fname == nullptr)
    return "?" + InHex(address);
  is_nameless = is_nameless || IsNamelessInProgram(info, program);
  std::string file = info.dli_fname;
  file.erase(0, file.rfind('/') + 1);
  if (info.dli_sname == nullptr) {
    return file + InHex(address - reinterpret_cast<uintptr_t>(info.dli_fbase));
  }
  return file + " " + Demangled(info.dli_sname) +
         InHex(address - reinterpret_cast<uintptr_t>(info.dli_saddr));
}

}  // namespace

CallStack CallStack::Here() {
  CallStack stack;
  stack.frames_.resize(kMaxFrames);
  stack.frames_.resize(static_cast<size_t>(backtrace(stack.frames_.data(), kMaxFrames)));
  if (!stack.empty()) stack.frames_.erase(stack.frames_.begin());  // this function
  return stack;
}

std::string CallStack::InWords() const {
  std::string text;
  const Dl_info program = Program();
  bool is_nameless = false;
  for (size_t i = 0; i < frames_.size(); ++i) {
    text += "\n#" + std::to_string(i) + " " + comm::InWords(frames_[i], program, is_nameless);
  }
  if (is_nameless && dlsym(RTLD_DEFAULT, "main") == nullptr)
    text += "\nlink the program with -rdynamic for the names of its functions";
  return text;
}

Error WithStack(Error error, const CallStack& stack) {
  if (error.code == ErrorCode::kMismatch && !stack.empty()) {
    error.message += "\nstack of this rank's call, innermost frame first:" + stack.InWords();
  }
  return error;
}

}  // namespace rankrun::comm

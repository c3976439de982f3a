#include "agent/stacks/stack_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "agent/stacks/worker_stacks.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

constexpr size_t kShownFrames = kMaxRecordFrames;
constexpr size_t kShownNative = 2;     // of them, above Python frames
constexpr size_t kMaxShortText = 100;  // characters of one frame

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Returns "pthread_mutex_lock" for "___pthread_mutex_lock", "__GI___libc_read".
std::string PublicName(const std::string& function) {
  std::string name = ShortFunction(function);
  for (std::string_view prefix : {"__GI_", "___", "__", "libc_"}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  return name;
}

// Returns the call with which a thread waits: "read(/tmp/pipe)"; empty: none.
// `inner` are its innermost frames in the C library.
std::string WaitText(const ThreadStack& thread, const std::vector<StackFrame>& inner) {
  std::string name = thread.system_call;
  // The outermost one is that which the program has called.
  for (const StackFrame& frame : inner) {
    if (!frame.function.empty()) name = PublicName(frame.function);
  }
  return name.empty() ? "" : name + "(" + thread.system_call_file + ")";
}

std::string PlaceOf(const StackFrame& frame) {
  if (frame.file.empty()) return BaseName(frame.module);
  const std::string line = frame.line > 0 ? ":" + std::to_string(frame.line) : "";
  return BaseName(frame.file) + line;
}

std::string ShortText(const StackFrame& frame) {
  const std::string place = PlaceOf(frame);
  const std::string function = frame.function.empty() ? "??" : ShortFunction(frame.function);
  return OneLine(place.empty() ? function : function + " (" + place + ")", kMaxShortText);
}

bool IsStart(const StackFrame& frame) { return IsRuntime(frame) || frame.function == "_start"; }

bool IsInInterpreter(const ProcessStacks& stacks, const StackFrame& frame) {
  return !stacks.interpreter.empty() && frame.module == stacks.interpreter;
}

std::string ThreadTitle(const ThreadStack& thread) {
  std::string text = "  thread " + std::to_string(thread.tid) + " (" + OneLine(thread.name) +
                     "), state " + thread.state;
  if (!thread.system_call.empty()) text += ", in " + OneLine(WaitText(thread, {}));
  if (!thread.wait_channel.empty()) text += ", waits in " + OneLine(thread.wait_channel);
  return text + "\n";
}

std::string LongText(const StackFrame& frame) {
  std::string text = frame.function.empty() ? "??" : frame.function;
  if (!frame.file.empty()) {
    text += " at " + frame.file;
    if (frame.line > 0) text += ":" + std::to_string(frame.line);
  }
  if (!frame.module.empty()) text += " in " + frame.module;
  return "    " + OneLine(text, 3 * kMaxStackText) + "\n";
}

// Returns `text` without the parts between balanced `open` and `close`.
std::string WithoutParts(const std::string& text, char open, char close) {
  std::string rest;
  int depth = 0;
  for (char c : text) {
    if (c == open) ++depth;
    if (depth == 0) rest += c;
    if (c == close && depth > 0) --depth;
  }
  return rest;
}

}  // namespace

bool IsRuntime(const StackFrame& frame) {
  constexpr std::string_view kRuntimes[] = {"libc.so",  "libc-2",     "libpthread", "ld-linux",
                                            "[vdso",    "libstdc++.", "libm.so",    "libc++.",
                                            "ld-musl-", "libgcc_s."};
  const std::string name = BaseName(frame.module);
  return std::ranges::any_of(kRuntimes, [&](auto prefix) { return name.starts_with(prefix); });
}

std::string ShortFunction(const std::string& function) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  std::string name = function;
  for (size_t at; (at = name.find(kAnonymous)) != std::string::npos;) {
    name.erase(at, kAnonymous.size());
  }
  const bool is_python_or_operator =
      name.find(".<") != std::string::npos || name.find("operator") != std::string::npos;
  if (is_python_or_operator || name.starts_with("<")) return name;
  name = WithoutParts(name, '<', '>');
  const size_t parameters = name.find('(');
  if (parameters == std::string::npos || parameters == 0) return name;
  name.resize(parameters);
  return name.substr(name.rfind(' ') + 1);  // a template's name begins with its return type
}

std::vector<StackFrame> MergedFrames(const ProcessStacks& stacks, const ThreadStack& thread) {
  if (thread.python.empty()) return thread.native;
  std::vector<StackFrame> frames;
  for (const StackFrame& frame : thread.native) {
    if (IsInInterpreter(stacks, frame)) break;
    frames.push_back(frame);
  }
  frames.insert(frames.end(), thread.python.begin(), thread.python.end());
  return frames;
}

std::vector<std::string> FramesThatMatter(const ProcessStacks& stacks) {
  if (stacks.threads.empty()) return {};
  const ThreadStack& thread = stacks.threads.front();
  const std::vector<StackFrame> all = MergedFrames(stacks, thread);
  const size_t native = all.size() - thread.python.size();
  size_t at = 0;
  while (at < native && IsRuntime(all[at])) ++at;
  std::vector<std::string> shown;
  const std::string wait =
      WaitText(thread, {all.begin(), all.begin() + static_cast<ptrdiff_t>(at)});
  if (!wait.empty()) shown.push_back(OneLine(wait, kMaxShortText));
  size_t natives = 0;
  for (; at < all.size() && shown.size() < kShownFrames; ++at) {
    const bool is_native = at < native;
    const bool is_hidden = is_native && (IsStart(all[at]) || all[at].function.empty());
    if (is_hidden) continue;
    if (is_native && !thread.python.empty() && ++natives > kShownNative) continue;
    shown.push_back(ShortText(all[at]));
  }
  return shown;
}

std::string FormatStacksText(const ProcessStacks& stacks) {
  std::string text = "pid " + std::to_string(stacks.pid);
  if (!stacks.name.empty()) text += " (" + OneLine(stacks.name) + "), state " + stacks.state;
  if (!stacks.note.empty()) text += ": " + OneLine(stacks.note);
  text += "\n";
  if (!stacks.python_note.empty()) {
    text += "  Python frames: " + OneLine(stacks.python_note) + "\n";
  }
  for (const ThreadStack& thread : stacks.threads) {
    text += ThreadTitle(thread);
    for (const StackFrame& frame : MergedFrames(stacks, thread)) text += LongText(frame);
    if (!thread.kernel.empty() && thread.native.empty()) {
      for (const std::string& frame : thread.kernel)
        text += "    " + OneLine(frame) + " [kernel]\n";
    }
  }
  return text;
}

}  // namespace rankrun::agent

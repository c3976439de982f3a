#include "agent/stacks/worker_stacks.h"

#include "agent/stacks/stack_text.h"
#include "base/printable.h"

namespace rankrun::agent {

WorkerStacks ForRecord(const ProcessStacks& stacks) {
  std::string note = stacks.note;
  if (!stacks.python_note.empty()) {
    note += (note.empty() ? "" : "; ") + ("Python frames: " + stacks.python_note);
  }
  return {.frames = FramesThatMatter(stacks), .note = note, .text = FormatStacksText(stacks)};
}

std::string StackLine(const WorkerStacks& stacks, size_t columns, size_t used,
                      const std::string& indent) {
  std::vector<std::string> parts;
  for (const std::string& frame : stacks.frames) {
    parts.push_back((parts.empty() ? "" : "<- ") + OneLine(frame));
  }
  if (!stacks.note.empty()) parts.push_back("(" + OneLine(stacks.note) + ")");
  std::string text;
  size_t column = used;
  for (const std::string& part : parts) {
    const bool fits = column + 1 + part.size() <= columns;
    if (!text.empty()) text += fits ? " " : "\n" + indent;
    column = (fits || text.empty() ? column + 1 : indent.size()) + part.size();
    text += part;
  }
  return text;
}

}  // namespace rankrun::agent

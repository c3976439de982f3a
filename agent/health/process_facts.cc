#include "agent/health/process_facts.h"

#include <time.h>

#include <cstdlib>
#include <sstream>
#include <utility>

#include "agent/health/awaited_descriptors.h"
#include "agent/health/condition.h"
#include "agent/health/waiting_call.h"
#include "agent/process/descendants.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

std::string NameOfProcess(pid_t pid) {
  std::string name = ReadOfProcess(pid, "comm");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return OneLine(name, 64);
}

// Returns the only child of a main thread; 0 if there are none or several.
pid_t OnlyChildOf(pid_t pid) {
  std::istringstream children(ReadOfProcess(pid, "task/" + std::to_string(pid) + "/children"));
  pid_t child = 0, second = 0;
  children >> child >> second;
  return second == 0 ? child : 0;
}

ProcessFacts ReadWithChildren(pid_t pid, AwaitedFiles& files, int depth);

// Returns "python3, which is reading /data/x (read)": a shell waits for its command. Without a pid
// the text is the same for all ranks that do the same.
std::string ChildInWords(pid_t child, AwaitedFiles& files, int depth) {
  const WorkerSample sample{.pid = child, .process = ReadWithChildren(child, files, depth)};
  const Condition condition = ConditionOf(sample, {});
  if (condition == Condition::kUnknown || condition == Condition::kBusy) {
    return NameOfProcess(child);
  }
  return NameOfProcess(child) + ", which " + ConditionInWords(sample, condition);
}

}  // namespace

uint64_t NumberIn(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":")) {
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10);
    }
  }
  return 0;
}

Duration CpuTimeOf(pid_t pid) {
  clockid_t clock;
  timespec used{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

namespace {

ProcessFacts ReadWithChildren(pid_t pid, AwaitedFiles& files, int depth) {
  ProcessFacts facts{.state = StateOf(pid)};
  if (facts.state == '\0') return facts;
  facts.wait_channel = OneLine(ReadOfProcess(pid, "wchan"), 64);
  if (facts.wait_channel == "0") facts.wait_channel.clear();
  WaitingCall call = ParseCall(ReadOfProcess(pid, "syscall"), facts.wait_channel);
  facts.call = call.kind;
  facts.call_name = call.name;
  facts.descriptors = AwaitedDescriptors(pid, call);
  AwaitedFile file = files.Find(pid, call, facts.wait_channel);
  facts.file = std::move(file.name);
  facts.file_detail = std::move(file.detail);
  if (facts.call == CallKind::kFile && facts.file.starts_with("socket:")) {
    facts.call = CallKind::kPeer;
  }
  std::string status = ReadOfProcess(pid, "status");
  facts.tracer = static_cast<pid_t>(NumberIn(status, "TracerPid"));
  if (facts.tracer != 0) facts.tracer_name = NameOfProcess(facts.tracer);
  facts.resident_bytes = NumberIn(status, "VmRSS") * 1024;
  std::string io = ReadOfProcess(pid, "io");
  facts.io_bytes = NumberIn(io, "rchar") + NumberIn(io, "wchar");
  const pid_t child = facts.call == CallKind::kChild && depth > 0 ? OnlyChildOf(pid) : 0;
  if (child != 0) facts.file_detail = ChildInWords(child, files, depth - 1);
  return facts;
}

}  // namespace

ProcessFacts ReadProcessFacts(pid_t pid, AwaitedFiles& files) {
  constexpr int kMaxShells = 3;  // one above the other
  return ReadWithChildren(pid, files, kMaxShells);
}

}  // namespace rankrun::agent

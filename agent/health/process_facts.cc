#include "agent/health/process_facts.h"

#include <time.h>

#include <cstdlib>
#include <sstream>
#include <utility>

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

ProcessFacts ReadProcessFacts(pid_t pid, AwaitedFiles& files) {
  ProcessFacts facts{.state = StateOf(pid)};
  if (facts.state == '\0') return facts;
  facts.wait_channel = OneLine(ReadOfProcess(pid, "wchan"), 64);
  if (facts.wait_channel == "0") facts.wait_channel.clear();
  WaitingCall call = ParseCall(ReadOfProcess(pid, "syscall"), facts.wait_channel);
  facts.call = call.kind;
  facts.call_name = call.name;
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
  return facts;
}

}  // namespace rankrun::agent

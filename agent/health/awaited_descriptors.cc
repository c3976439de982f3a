#include "agent/health/awaited_descriptors.h"

#include <poll.h>

#include <cstring>
#include <sstream>
#include <string>

#include "agent/health/process_memory.h"
#include "agent/process/descendants.h"

namespace rankrun::agent {
namespace {

using Descriptors = std::optional<std::vector<int>>;

constexpr uint64_t kMaxPolled = 256;

Descriptors PolledBy(pid_t pid, const WaitingCall& call) {
  if (call.polled_count > kMaxPolled) return std::nullopt;
  const auto count = static_cast<size_t>(call.polled_count);
  const std::string memory = MemoryOf(pid, call.polled, count * sizeof(pollfd));
  if (memory.size() != count * sizeof(pollfd)) return std::nullopt;
  std::vector<int> descriptors;
  for (size_t i = 0; i < count; ++i) {
    pollfd polled;
    std::memcpy(&polled, memory.data() + i * sizeof polled, sizeof polled);
    descriptors.push_back(polled.fd);
  }
  return descriptors;
}

// Reads lines "tfd:        5 events: ...".
Descriptors WatchedBy(pid_t pid, int epoll) {
  std::istringstream lines(ReadOfProcess(pid, "fdinfo/" + std::to_string(epoll)));
  std::vector<int> descriptors;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    int descriptor = -1;
    if (words >> name >> descriptor && name == "tfd:") descriptors.push_back(descriptor);
  }
  if (descriptors.empty()) return std::nullopt;
  return descriptors;
}

// A signal wakes the thread itself, and so tells nothing of other threads.
bool WaitsForSignal(const WaitingCall& call) {
  return call.name == "pause" || call.name.starts_with("rt_sig");
}

// Returns the call of another thread; nothing if there is no such thread: the number was that of a
// lock in shared memory.
std::optional<WaitingCall> CallOfThread(pid_t pid, pid_t thread) {
  if (thread == 0) return std::nullopt;
  const std::string folder = "task/" + std::to_string(thread) + "/";
  const std::string line = ReadOfProcess(pid, folder + "syscall");
  if (line.empty()) return std::nullopt;
  return ParseCall(line, ReadOfProcess(pid, folder + "wchan"));
}

// Follows at most `depth` threads that wait for the end of each other.
Descriptors AwaitedBy(pid_t pid, const WaitingCall& call, int depth) {
  switch (call.kind) {
    case CallKind::kSleep:
    case CallKind::kChild:
      return std::vector<int>();
    case CallKind::kLock:
      if (depth == 0) return std::nullopt;
      if (auto joined = CallOfThread(pid, call.joined)) return AwaitedBy(pid, *joined, depth - 1);
      return std::vector<int>();
    case CallKind::kFile:
    case CallKind::kPeer:
      return call.descriptor < 0 ? std::vector<int>() : std::vector<int>{call.descriptor};
    case CallKind::kPoll:
      if (call.polled != 0) return PolledBy(pid, call);
      if (call.epoll >= 0) return WatchedBy(pid, call.epoll);
      return std::nullopt;
    case CallKind::kOther:
      if (WaitsForSignal(call)) return std::vector<int>();
      return std::nullopt;
    case CallKind::kNone:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<int>> AwaitedDescriptors(pid_t pid, const WaitingCall& call) {
  constexpr int kMaxJoins = 4;
  return AwaitedBy(pid, call, kMaxJoins);
}

}  // namespace rankrun::agent

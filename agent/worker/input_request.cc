#include "agent/worker/input_request.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>

#include "agent/process/descendants.h"

namespace rankrun::agent {
namespace {

constexpr int kMaxDepth = 4;  // of wrappers around a program

// Returns the descriptor of a poll with one entry.
int PolledDescriptor(pid_t process, uint64_t address) {
  pollfd entry{.fd = -1, .events = 0, .revents = 0};
  iovec here{&entry, sizeof entry};
  iovec there{reinterpret_cast<void*>(address), sizeof entry};
  const ssize_t size = process_vm_readv(process, &here, 1, &there, 1, 0);
  return size == sizeof entry ? entry.fd : -1;
}

std::optional<bool> Waits(pid_t process, const std::string& file, int depth) {
  const std::string line = ReadOfProcess(process, "syscall");
  if (line.empty()) return std::nullopt;
  const auto call = ParseInputCall(line);
  if (!call) return false;
  switch (call->kind) {
    case InputCall::Kind::kRead:
      return FileOfDescriptor(process, call->descriptor) == file;
    case InputCall::Kind::kPoll:
      return FileOfDescriptor(process, PolledDescriptor(process, call->address)) == file;
    case InputCall::Kind::kChild:
      break;
  }
  if (depth == kMaxDepth) return false;
  std::istringstream children(
      ReadOfProcess(process, "task/" + std::to_string(process) + "/children"));
  for (pid_t child = 0; children >> child;) {
    if (Waits(child, file, depth + 1).value_or(false)) return true;
  }
  return false;
}

}  // namespace

std::optional<InputCall> ParseInputCall(const std::string& line) {
  using Kind = InputCall::Kind;
  std::istringstream words(line);
  long number = -1;
  std::array<std::string, 2> arguments;
  if (!(words >> number >> arguments[0] >> arguments[1])) return std::nullopt;
  const uint64_t first = std::strtoull(arguments[0].c_str(), nullptr, 16);
  const uint64_t second = std::strtoull(arguments[1].c_str(), nullptr, 16);
  switch (number) {
    case SYS_read:
    case SYS_readv:
      return InputCall{.kind = Kind::kRead, .descriptor = static_cast<int>(first)};
    case SYS_wait4:
    case SYS_waitid:
      return InputCall{.kind = Kind::kChild};
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6:  // readline waits for descriptor 0 alone
      if (first != 1) return std::nullopt;
      return InputCall{.kind = Kind::kRead, .descriptor = 0};
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll:
      if (second != 1) return std::nullopt;
      return InputCall{.kind = Kind::kPoll, .address = first};
    default:
      return std::nullopt;
  }
}

std::string FileOfDescriptor(pid_t process, int descriptor) {
  if (descriptor < 0) return "";
  const std::string link = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  std::array<char, 4096> path;
  const ssize_t size = readlink(link.c_str(), path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<size_t>(size)) : "";
}

bool IsInForeground(pid_t process) {
  const std::string text = ReadOfProcess(process, "stat");
  const size_t name_end = text.rfind(')');  // the name may contain anything
  if (name_end == std::string::npos) return false;
  std::istringstream fields(text.substr(name_end + 1));
  std::string state;
  long parent = 0, group = 0, session = 0, terminal = 0, foreground = 0;
  fields >> state >> parent >> group >> session >> terminal >> foreground;
  return foreground == group || foreground == -1;
}

std::optional<bool> WaitsForInput(pid_t process, const std::string& file) {
  return file.empty() ? std::nullopt : Waits(process, file, 0);
}

}  // namespace rankrun::agent

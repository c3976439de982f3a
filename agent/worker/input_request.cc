#include "agent/worker/input_request.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "agent/health/awaited_descriptors.h"
#include "agent/process/descendants.h"

namespace rankrun::agent {
namespace {

constexpr int kMaxDepth = 4;  // of wrappers around a program

bool ThreadWaits(pid_t process, const std::string& thread, const std::string& file) {
  const std::string line = ReadOfProcess(process, thread + "/syscall");
  if (const auto descriptor = AwaitedInput(line)) {
    return FileOfDescriptor(process, *descriptor) == file;
  }
  const auto polled = AwaitedDescriptors(process, ParseCall(line));
  const auto is_file = [&](int descriptor) {
    return FileOfDescriptor(process, descriptor) == file;
  };
  return polled && std::ranges::any_of(*polled, is_file);
}

bool WaitsForChild(pid_t process) {
  return ParseCall(ReadOfProcess(process, "syscall")).kind == CallKind::kChild;
}

std::vector<std::string> Threads(pid_t process, Readers readers) {
  const std::string folder = "/proc/" + std::to_string(process) + "/task";
  if (readers == Readers::kMainThreads) return {"task/" + std::to_string(process)};
  std::vector<std::string> threads;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    threads.push_back("task/" + entry->path().filename().string());
  }
  return threads;
}

bool Waits(pid_t process, const std::string& file, Readers readers, int depth) {
  const std::vector<std::string> threads = Threads(process, readers);
  for (const std::string& thread : threads) {
    if (ThreadWaits(process, thread, file)) return true;
  }
  if (depth == kMaxDepth) return false;
  if (readers == Readers::kMainThreads && !WaitsForChild(process)) return false;
  for (const std::string& thread : threads) {
    std::istringstream children(ReadOfProcess(process, thread + "/children"));
    for (pid_t child = 0; children >> child;) {
      if (Waits(child, file, readers, depth + 1)) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<int> AwaitedInput(const std::string& line) {
  std::istringstream words(line);
  long number = -1;
  std::string argument;
  if (!(words >> number >> argument)) return std::nullopt;
  const uint64_t first = std::strtoull(argument.c_str(), nullptr, 16);
  switch (number) {
    case SYS_read:
    case SYS_readv:
      return static_cast<int>(first);
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6:  // readline waits for descriptor 0 alone
      if (first != 1) return std::nullopt;
      return 0;
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

bool ShowsCalls(pid_t process) { return !ReadOfProcess(process, "syscall").empty(); }

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

bool WaitsForInput(pid_t process, const std::string& file, Readers readers) {
  return !file.empty() && Waits(process, file, readers, 0);
}

}  // namespace rankrun::agent

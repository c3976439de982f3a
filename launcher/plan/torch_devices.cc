#include "launcher/plan/torch_devices.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <sstream>

#include "base/fd.h"
#include "base/format.h"
#include "base/process/spawn.h"

namespace rankrun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Imports PyTorch, which takes seconds, only if it may find other devices than
// those of NVIDIA, which rankrun counts itself.
constexpr const char* kQuestion = R"(
import importlib.util, os

def has_plugins():
    try:
        from importlib.metadata import entry_points
    except ImportError:
        return True
    found = entry_points()
    group = "torch.backends"
    return found.get(group) if isinstance(found, dict) else found.select(group=group)

def has_other_devices(torch):
    version = {}
    path = os.path.join(os.path.dirname(torch.origin or ""), "version.py")
    if not os.path.isfile(path):  # a folder or a file that happens to have this name
        return False
    with open(path) as file:
        exec(file.read(), version)
    return version.get("hip") or version.get("xpu") or has_plugins()

found = importlib.util.find_spec("torch")
kind, count = "none", 0
if found is not None and has_other_devices(found):
    import torch
    if hasattr(torch, "accelerator"):
        if torch.accelerator.is_available():
            kind, count = torch.accelerator.current_accelerator().type, torch.accelerator.device_count()
    elif torch.cuda.is_available():
        kind, count = "cuda", torch.cuda.device_count()
print("\nrankrun", kind, count, flush=True)
os._exit(0)
)";
constexpr std::string_view kAnswer = "\nrankrun ";

std::vector<std::string> WithoutRepetition(const std::vector<std::string>& environment) {
  std::map<std::string, std::string> entries;
  for (const std::string& entry : environment) entries[entry.substr(0, entry.find('='))] = entry;
  std::vector<std::string> result;
  for (auto& [name, entry] : entries) result.push_back(std::move(entry));
  return result;
}

enum class Answer { kComplete, kLate, kStopped };

// Reads the output of the process until its end.
Answer ReadAll(int fd, const TorchPatience& patience, steady_clock::time_point deadline,
               std::string& text) {
  for (;;) {
    auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    std::array<pollfd, 2> entries{{{fd, POLLIN, 0}, {patience.stop_fd, POLLIN, 0}}};
    int ready = poll(entries.data(), entries.size(), static_cast<int>(std::max<int64_t>(0, left)));
    if (ready == 0) return Answer::kLate;
    if (ready > 0 && entries[1].revents != 0 && patience.is_stopped()) return Answer::kStopped;
    if (ready < 0 || entries[0].revents == 0) continue;
    char buffer[4096];
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got == 0) return Answer::kComplete;
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
}

// Waits for the end of the process, then ends what it has started. Kills it at
// the deadline and returns nothing.
std::optional<ProcessExit> AwaitEnd(const SpawnedProcess& process,
                                    steady_clock::time_point deadline) {
  const bool has_ended = process.handle.AwaitEnd(deadline);
  kill(-process.pid, SIGKILL);
  for (;;) {
    process.handle.AwaitEnd(steady_clock::now() + std::chrono::hours(1));
    auto exit = process.handle.Reap();
    if (exit) return has_ended ? exit : std::nullopt;
  }
}

std::optional<TorchDevices> ReadAnswer(const std::string& text) {
  size_t answer = text.rfind(kAnswer);
  if (answer == text.npos) return std::nullopt;
  TorchDevices devices;
  std::istringstream words(text.substr(answer + kAnswer.size()));
  if (!(words >> devices.type >> devices.count)) return std::nullopt;
  return devices.count > 0 ? devices : TorchDevices();
}

}  // namespace

Result<TorchDevices> AskTorch(const std::string& python,
                              const std::vector<std::string>& environment,
                              const TorchPatience& patience) {
  const auto deadline = steady_clock::now() + patience.limit;
  Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  int ends[2];
  if (!null || pipe2(ends, O_CLOEXEC) != 0) return SystemError("ask PyTorch", errno);
  Fd output(ends[0]);
  Fd input(ends[1]);
  auto process = SpawnProcess({.file = python,
                               .arguments = {python, "-c", kQuestion},
                               .environment = WithoutRepetition(environment),
                               .stdin_fd = null.get(),
                               .stdout_fd = input.get(),
                               .stderr_fd = null.get()});
  if (!process) return std::move(process).error();
  input.Reset();
  std::string text;
  const Answer answer = ReadAll(output.get(), patience, deadline, text);
  auto exit = AwaitEnd(*process, answer == Answer::kStopped ? steady_clock::now() : deadline);
  const std::string whose = "the PyTorch of " + python;
  if (answer == Answer::kStopped) return Error{ErrorCode::kCancelled, whose + " was not awaited"};
  if (!exit) {
    return Error{ErrorCode::kTimeout,
                 whose + " did not answer within " + FormatSeconds(patience.limit)};
  }
  if (auto devices = ReadAnswer(text)) return *devices;
  return Error{ErrorCode::kSystem,
               whose + " failed with exit code " + std::to_string(exit->ShellCode())};
}

}  // namespace rankrun::launcher

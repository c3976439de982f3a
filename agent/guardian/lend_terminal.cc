#include "agent/guardian/lend_terminal.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

namespace rankrun::agent {
namespace {

// Major numbers of pseudo-terminals; each has 256 of them.
constexpr unsigned kFirstPtyMajor = 136;
constexpr unsigned kLastPtyMajor = 143;

// The process that has the terminal, for the signal handler.
volatile sig_atomic_t borrower = 0;

void PassInterrupt(int) { kill(static_cast<pid_t>(borrower), SIGINT); }

// Returns the path of the terminal with this device number; empty: not found. The
// descriptor itself may be /dev/tty, which means another terminal in another session.
std::string PathOf(unsigned device) {
  std::string path;
  if (major(device) >= kFirstPtyMajor && major(device) <= kLastPtyMajor) {
    path = "/dev/pts/" + std::to_string((major(device) - kFirstPtyMajor) * 256 + minor(device));
  } else {
    const std::string link =
        "/sys/dev/char/" + std::to_string(major(device)) + ":" + std::to_string(minor(device));
    char target[512];
    const ssize_t size = readlink(link.c_str(), target, sizeof target);
    const std::string device_path(target, size > 0 ? static_cast<size_t>(size) : 0);
    path = "/dev/" + device_path.substr(device_path.rfind('/') + 1);
  }
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && found.st_rdev == device ? path : "";
}

void SetSignals(pid_t process) {
  borrower = process;
  for (int number : {SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE}) signal(number, SIG_IGN);
  struct sigaction pass {};
  pass.sa_handler = PassInterrupt;
  sigaction(SIGINT, &pass, nullptr);
}

// Keeps no descriptor of the guardian, whose peers would not notice its death.
void CloseAllBut(int first, int second) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  std::vector<int> open_ones;
  while (const dirent* entry = readdir(folder)) open_ones.push_back(std::atoi(entry->d_name));
  closedir(folder);
  for (int fd : open_ones) {
    if (fd != first && fd != second) close(fd);
  }
}

}  // namespace

int LendTerminal(pid_t process, int pipe, int report_fd) {
  unsigned device = 0;
  if (ioctl(STDIN_FILENO, TIOCGDEV, &device) != 0) return errno;
  const std::string path = PathOf(device);
  if (path.empty()) return ENOENT;
  const std::string answer = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(pipe);
  // Not released: its end is that of this process.
  const int fd = open(answer.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return errno;
  struct stat status {};  // the process may have closed the pipe and opened a file
  if (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return EPIPE;
  SetSignals(process);
  CloseAllBut(fd, report_fd);
  const std::string line = path + "\n";
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return EPIPE;
  close(report_fd);
  pollfd closed{fd, 0, 0};
  while ((closed.revents & (POLLERR | POLLHUP)) == 0) {
    if (poll(&closed, 1, -1) < 0 && errno != EINTR) break;
  }
  _exit(0);
}

}  // namespace rankrun::agent

#include "agent/output/output_channel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

namespace rankrun::agent {

Result<OutputChannel> OutputChannel::OpenPipe(size_t bytes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("create a pipe", errno);
  OutputChannel channel{.read_end = Fd(ends[0]), .worker_end = Fd(ends[1])};
  fcntl(ends[0], F_SETFL, O_NONBLOCK);  // affects this end only
  // Beyond the user's limit, the pipe keeps its default size.
  fcntl(ends[0], F_SETPIPE_SZ, static_cast<int>(bytes));
  return channel;
}

Result<OutputChannel> OutputChannel::OpenTerminal(int like_fd) {
  OutputChannel channel{.read_end = Fd(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)),
                        .worker_end = Fd()};
  if (!channel.read_end) return SystemError("create a terminal", errno);
  int master = channel.read_end.get();
  if (grantpt(master) != 0 || unlockpt(master) != 0) {
    return SystemError("unlock a terminal", errno);
  }
  // Not opened by its name, which may mean another terminal in a container.
  channel.worker_end.Reset(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!channel.worker_end) return SystemError("open a terminal", errno);
  termios settings;
  if (tcgetattr(channel.worker_end.get(), &settings) == 0) {
    cfmakeraw(&settings);
    tcsetattr(channel.worker_end.get(), TCSANOW, &settings);
  }
  CopyTerminalSize(like_fd, master);
  return channel;
}

bool CopyTerminalSize(int from_fd, int to_fd) {
  winsize size;
  return ioctl(from_fd, TIOCGWINSZ, &size) == 0 && ioctl(to_fd, TIOCSWINSZ, &size) == 0;
}

}  // namespace rankrun::agent

#include "tests/free_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace rankrun::test {
namespace {

// Claims a port for this process among all tests on this machine: an abstract
// name, which the kernel releases when the process ends.
bool ClaimPort(int port) {
  static std::vector<Fd> claims;
  std::string name = "rankrun-test-port-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, name.size());
  Fd claim(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(claim.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return false;
  claims.push_back(std::move(claim));
  return true;
}

}  // namespace

int FreePort() {
  static int next = getpid();
  constexpr int kFirst = 12'000, kPorts = 16'000;
  for (;;) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    int port = kFirst + (next++ * 7) % kPorts;
    if (!ClaimPort(port)) continue;
    address.sin_port = htons(static_cast<uint16_t>(port));
    Fd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      return port;
    }
  }
}

}  // namespace rankrun::test

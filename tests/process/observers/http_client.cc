#include "tests/process/observers/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>

namespace rankrun::testing {

Fd Connect(int port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  return connect(fd.get(), raw, sizeof address) == 0 ? std::move(fd) : Fd();
}

Fd Connect(const std::string& path) {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  return connect(fd.get(), raw, sizeof address) == 0 ? std::move(fd) : Fd();
}

bool Send(const Fd& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::string Receive(const Fd& socket) {
  constexpr int kTimeoutMillis = 20'000;
  std::string text;
  std::array<char, 4096> bytes;
  while (true) {
    pollfd wait{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, kTimeoutMillis) <= 0) return text;
    ssize_t count = recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (count <= 0) return text;
    text.append(bytes.data(), static_cast<size_t>(count));
  }
}

std::string Exchange(int port, std::string_view request) {
  Fd socket = Connect(port);
  if (!socket) return "";
  Send(socket, request);
  return Receive(socket);
}

std::string Scrape(int port) {
  return Exchange(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

}  // namespace rankrun::testing

// store_server: the store server by itself, for store_bench. Prints
// "127.0.0.1:PORT" and runs until SIGTERM.

#include <csignal>
#include <cstdio>

#include "base/uv_loop.h"
#include "base/uv_signal.h"
#include "store/server.h"

namespace rankrun::bench {
namespace {

int Fail(const Error& error) {
  std::fprintf(stderr, "store_server: %s\n", error.message.c_str());
  return 1;
}

int Main() {
  auto address = SocketAddress::FromNumeric("127.0.0.1", 0);
  if (!address) return Fail(address.error());
  Loop loop;
  auto term = Signal::Catch(loop, SIGTERM, [&loop] { loop.Stop(); });
  if (!term) return Fail(term.error());
  store::ServerOptions options;
  options.addresses = {{*address}};
  auto server = store::Server::Listen(loop, std::move(options));
  if (!server) return Fail(server.error());
  std::printf("127.0.0.1:%d\n", (*server)->port());
  std::fflush(stdout);
  loop.Run();
  return 0;
}

}  // namespace
}  // namespace rankrun::bench

int main() { return rankrun::bench::Main(); }

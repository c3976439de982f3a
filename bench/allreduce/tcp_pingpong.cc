// Moves a message between two processes over loopback TCP, forth and back: each has
// its own core, sends with TCP_NODELAY, and polls the socket without sleeping. In
// a round trip, as in an AllReduce of two ranks, each process sends and receives
// every byte once. With --both-ways, the first argument, both send at once. For the
// other arguments and the output see allreduce_peer.h.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <span>

#include "base/fd.h"
#include "bench/allreduce/allreduce_peer.h"
#include "bench/allreduce/pin.h"

namespace rankrun::bench {
namespace {

constexpr int kProcesses = 2;

[[noreturn]] void Fail(const char* what, const char* cause) {
  std::fprintf(stderr, "tcp_pingpong: %s: %s\n", what, cause);
  std::exit(1);
}

int Checked(int result, const char* what) {
  if (result < 0) Fail(what, std::strerror(errno));
  return result;
}

Fd NewSocket() {
  return Fd(Checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "create a socket"));
}

void PrepareForPolling(const Fd& socket) {
  const int on = 1;
  Checked(setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), "set TCP_NODELAY");
  Checked(fcntl(socket.get(), F_SETFL, O_NONBLOCK), "set O_NONBLOCK");
}

// Returns both ends of a new connection.
std::array<Fd, kProcesses> Connect() {
  Fd listener = NewSocket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  Checked(bind(listener.get(), generic, length), "bind to loopback");
  Checked(listen(listener.get(), 1), "listen at loopback");
  Checked(getsockname(listener.get(), generic, &length), "read the port");
  Fd client = NewSocket();
  Checked(connect(client.get(), generic, length), "connect to loopback");
  Fd server(Checked(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept"));
  PrepareForPolling(client);
  PrepareForPolling(server);
  return {std::move(server), std::move(client)};
}

class Process {
 public:
  Process(Fd socket, int rank) : socket_(std::move(socket)), rank_(rank) {}

  void RoundTrip(std::span<std::byte> message) const {
    if (rank_ == 0) Send(message);
    Receive(message);
    if (rank_ != 0) Send(message);
  }

  // Sends one message while it receives the other.
  void Exchange(std::span<const std::byte> out, std::span<std::byte> in) const {
    while (!out.empty() || !in.empty()) {
      if (!out.empty()) out = out.subspan(SendSome(out));
      if (!in.empty()) in = in.subspan(ReceiveSome(in));
    }
  }

  // Returns the largest value of both processes.
  double Largest(double value) const {
    double other = 0;
    Send(std::as_bytes(std::span(&value, 1)));
    Receive(std::as_writable_bytes(std::span(&other, 1)));
    return std::max(value, other);
  }

 private:
  void Send(std::span<const std::byte> data) const {
    while (!data.empty()) data = data.subspan(SendSome(data));
  }

  void Receive(std::span<std::byte> data) const {
    while (!data.empty()) data = data.subspan(ReceiveSome(data));
  }

  size_t SendSome(std::span<const std::byte> data) const {
    return Moved(send(socket_.get(), data.data(), data.size(), MSG_NOSIGNAL));
  }

  size_t ReceiveSome(std::span<std::byte> data) const {
    ssize_t received = recv(socket_.get(), data.data(), data.size(), 0);
    if (received == 0) Fail("receive", "the other process has ended");
    return Moved(received);
  }

  // Returns the bytes that a system call moved: 0 if it would block.
  static size_t Moved(ssize_t result) {
    if (result >= 0) return static_cast<size_t>(result);
    if (errno != EAGAIN && errno != EINTR) Fail("move bytes", std::strerror(errno));
    return 0;
  }

  Fd socket_;
  int rank_;
};

void Measure(const Process& process, int rank, bool both_ways, const AllReducePlan& plan) {
  for (size_t bytes : plan.sizes) {
    std::vector<std::byte> message(bytes), received(both_ways ? bytes : 0);
    auto move = [&] {
      if (both_ways) return process.Exchange(message, received);
      process.RoundTrip(message);
    };
    BatchTimes times = MeasureBatches(
        plan.batches, move, [&](double seconds) { return process.Largest(seconds); }, [] {});
    if (rank == 0) PrintTimes(both_ways ? "stream" : "pingpong", kProcesses, bytes, times);
  }
}

int Main(bool both_ways, const AllReducePlan& plan) {
  std::array<Fd, kProcesses> ends = Connect();
  const pid_t child = Checked(fork(), "fork");
  if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int rank = child == 0 ? 1 : 0;
  Checked(PinToCore(rank), "pin the process");
  ends[1 - rank].Reset();  // otherwise a process never sees the end of the other one
  Measure(Process(std::move(ends[rank]), rank), rank, both_ways, plan);
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) {
  const bool both_ways = argc > 1 && std::strcmp(argv[1], "--both-ways") == 0;
  const int skipped = both_ways ? 1 : 0;
  return rankrun::bench::Main(both_ways,
                              rankrun::bench::ParseAllReducePlan(argc - skipped, argv + skipped));
}

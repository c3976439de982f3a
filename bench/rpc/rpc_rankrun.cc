// Round trips of rpc::RpcSync, for rpc.sh: a call of 64 bytes that come back, in
// alternation with bare round trips of as many bytes over TCP, in which both ends
// sleep in recv, as most programs do, or poll it, as rankrun does.
// Usage: rpc_rankrun ROUNDS CALLS

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include <rankrun/distributed.h>
#include <rankrun/rpc.h>

namespace {

using rankrun::rpc::Payload;
using Clock = std::chrono::steady_clock;

constexpr size_t kBytes = 64;

double MicrosecondsSince(Clock::time_point began, int count) {
  return std::chrono::duration<double, std::micro>(Clock::now() - began).count() / count;
}

// Connects ranks 0 and 1.
int Connect(int rank) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<int32_t> port{0};
  if (rank == 0) {
    socklen_t size = sizeof address;
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 1) != 0) exit(1);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    port[0] = address.sin_port;
  }
  rankrun::World().Broadcast(port, rankrun::GlobalRank{0});
  if (rank == 0) {
    fd = accept(fd, nullptr, nullptr);
  } else {
    address.sin_port = static_cast<in_port_t>(port[0]);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) exit(1);
  }
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

enum class Wait { kSleep = 0, kPoll = MSG_DONTWAIT };

void Receive(int fd, char* data, Wait wait) {
  for (size_t got = 0; got < kBytes;) {
    ssize_t more = recv(fd, data + got, kBytes - got, static_cast<int>(wait));
    if (more == 0) exit(1);
    if (more > 0) got += static_cast<size_t>(more);
  }
}

void Send(int fd, const char* data) {
  if (send(fd, data, kBytes, 0) != static_cast<ssize_t>(kBytes)) exit(1);
}

double BareRoundTrip(int fd, int rank, int count, Wait wait) {
  char data[kBytes] = {};
  rankrun::World().Barrier();
  auto began = Clock::now();
  for (int i = 0; i < count; ++i) {
    if (rank == 0) Send(fd, data);
    Receive(fd, data, wait);
    if (rank == 1) Send(fd, data);
  }
  return MicrosecondsSince(began, count);
}

double Calls(int count) {
  const std::string argument(kBytes, 'x');
  auto began = Clock::now();
  for (int i = 0; i < count; ++i) {
    if (rankrun::rpc::RpcSync(1, "echo", {argument}).bytes.size() != kBytes) exit(1);
  }
  return MicrosecondsSince(began, count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  int count = std::atoi(argv[2]);
  rankrun::rpc::RegisterMethod(
      "echo", [](const rankrun::rpc::WorkerInfo&, const Payload& text) { return text; });
  rankrun::Init();
  int rank = rankrun::World().global_rank();
  int fd = Connect(rank);
  rankrun::rpc::Init("worker" + std::to_string(rank));
  for (int i = 0; i < std::atoi(argv[1]); ++i) {
    double sleeping = BareRoundTrip(fd, rank, count, Wait::kSleep);
    double polling = BareRoundTrip(fd, rank, count, Wait::kPoll);
    rankrun::World().Barrier();
    double calls = rank == 0 ? Calls(count) : 0;
    rankrun::World().Barrier();
    if (rank != 0) continue;
    std::cout << sleeping << " " << polling << " " << calls << "  " << calls / sleeping << " "
              << calls / polling << std::endl;
  }
  rankrun::rpc::Shutdown();
  rankrun::Destroy();
}

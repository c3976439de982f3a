// Large and many calls of RPC between two workers, for rpc.sh: 10,000 calls in flight, the
// memory that 10,000 calls leave behind, an attachment of 1 GiB, and the time after which a
// call to a killed worker ends. Usage: rpc_limits

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/rpc.h>

namespace {

using rankrun::rpc::Attachment;
using rankrun::rpc::Payload;
using rankrun::rpc::RpcAsync;
using rankrun::rpc::RpcSync;
using rankrun::rpc::WorkerInfo;
using Clock = std::chrono::steady_clock;

constexpr int kCalls = 10'000;

double MillisecondsSince(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

Payload Echo(const WorkerInfo&, const Payload& arguments) { return arguments; }

Payload Size(const WorkerInfo&, const Payload& arguments) {
  return {std::to_string(arguments.attachments.at(0).bytes.size())};
}

// The clock is the same in all processes of a host.
Payload Die(const WorkerInfo&, const Payload& path) {
  auto now = Clock::now().time_since_epoch().count();
  if (FILE* file = fopen(path.bytes.c_str(), "w")) {
    fwrite(&now, sizeof now, 1, file);
    fclose(file);
  }
  raise(SIGKILL);
  return {};
}

void CallsInFlight() {
  auto began = Clock::now();
  std::vector<rankrun::Future<Payload>> replies;
  for (int i = 0; i < kCalls; ++i) replies.push_back(RpcAsync(1, "echo", {std::to_string(i)}));
  for (int i = 0; i < kCalls; ++i) {
    if (replies[static_cast<size_t>(i)].Wait().bytes != std::to_string(i)) exit(1);
  }
  std::cout << kCalls << " calls in flight: " << MillisecondsSince(began) << " ms" << std::endl;
}

void Memory() {
  auto call = [] {
    for (int i = 0; i < kCalls; ++i) RpcSync(1, "echo", {std::string(64, 'x')});
  };
  call();
  size_t before = mallinfo2().uordblks;
  call();
  auto grown = static_cast<long>(mallinfo2().uordblks) - static_cast<long>(before);
  std::cout << kCalls << " calls leave " << grown << " bytes behind" << std::endl;
}

void Gigabyte() {
  constexpr size_t kBytes = size_t{1} << 30;
  auto memory = std::shared_ptr<std::byte[]>(new std::byte[kBytes]);
  std::memset(memory.get(), 1, kBytes);
  auto began = Clock::now();
  Payload reply = RpcSync(1, "size", {"", {Attachment{memory, {memory.get(), kBytes}}}});
  if (reply.bytes != std::to_string(kBytes)) exit(1);
  double ms = MillisecondsSince(began);
  std::cout << "an attachment of 1 GiB: " << ms << " ms, " << static_cast<double>(kBytes) / ms / 1e6
            << " GB/s" << std::endl;
}

void Death() {
  std::string path = "/tmp/rpc_limits." + std::to_string(getpid());
  std::string why = "no error";
  try {
    RpcSync(1, "die", {path});
  } catch (const rankrun::DistNetworkError& error) {
    why = error.what();
  }
  auto now = Clock::now();
  Clock::rep died = 0;
  if (FILE* file = fopen(path.c_str(), "r")) {
    if (fread(&died, sizeof died, 1, file) != 1) exit(1);
    fclose(file);
    remove(path.c_str());
  }
  std::cout << "a call to a worker ended "
            << MillisecondsSince(Clock::time_point(Clock::duration(died))) - MillisecondsSince(now)
            << " ms after its death: " << why << std::endl;
}

}  // namespace

int main() {
  rankrun::rpc::RegisterMethod("echo", Echo);
  rankrun::rpc::RegisterMethod("size", Size);
  rankrun::rpc::RegisterMethod("die", Die);
  rankrun::Init();
  int rank = rankrun::World().global_rank();
  rankrun::rpc::Init("worker" + std::to_string(rank));
  if (rank == 1) pause();    // until it dies
  signal(SIGTERM, SIG_IGN);  // of the agent, which ends the job then
  CallsInFlight();
  Memory();
  Gigabyte();
  Death();
  _exit(0);
}

// hanger HOW [FILE]: four ranks call Barrier a few times. Then rank 2 does what HOW names, while
// the others go on.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/future.h>
#include <rankrun/saving_notice.h>
#include <rankrun/store.h>

namespace {

using rankrun::GlobalRank;
using rankrun::ProcessGroup;

constexpr int kCalls = 5;
constexpr int kLate = 2;  // the rank that hangs

const char* file = "";
volatile bool is_endless = true;

[[noreturn]] void SleepForever() {
  for (;;) sleep(3'600);
}

void Read() {
  int fifo = open(file, O_RDWR | O_CLOEXEC);
  char byte;
  if (read(fifo, &byte, 1) != 0) _exit(97);
}

void LockTwice() {
  std::mutex mutex;
  mutex.lock();
  mutex.lock();
}

void Spin() {
  while (is_endless) {
  }
}

// Rank 2 does `late`, then all call Barrier.
std::function<void(ProcessGroup&)> After(const std::function<void()>& late) {
  return [late](ProcessGroup& world) {
    if (world.global_rank() == kLate) late();
    world.Barrier();
  };
}

void OppositeGroups(ProcessGroup&) {
  ProcessGroup& a = rankrun::NewGroup({.ranks = {1, 2}, .description = "A"});
  ProcessGroup& b = rankrun::NewGroup({.ranks = {1, 2}, .description = "B"});
  if (!a.is_member()) SleepForever();
  bool is_first = a.global_rank() == 1;
  (is_first ? a : b).Barrier();
  (is_first ? b : a).Barrier();
}

void Ring(ProcessGroup& world) {
  std::vector<int> value(1);
  int ranks = world.world_size();
  world.Recv(value, GlobalRank{(world.global_rank() + ranks - 1) % ranks});
}

// All but rank 2 call Barrier without waiting for it, and then do `wait`.
std::function<void(ProcessGroup&)> WithWork(const std::function<void(const rankrun::Work&)>& wait) {
  return [wait](ProcessGroup& world) {
    if (world.global_rank() == kLate) SleepForever();
    wait(world.Barrier(rankrun::kAsync));
  };
}

void WaitForKey() {
  rankrun::TcpStore store({.host = getenv("MASTER_ADDR"),
                           .port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")))});
  store.Wait({"never"});
}

// All but rank 2 wait for a thread that waits for a key of the store.
void JoinThread(ProcessGroup& world) {
  if (world.global_rank() == kLate) SleepForever();
  std::thread(WaitForKey).join();
}

// Each step takes rank 2 ten times as long as the others, and all of them go on.
void Slow(ProcessGroup& world) {
  for (int i = 0; i < 20; ++i) {
    if (world.global_rank() == kLate) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    world.Barrier();
  }
}

void Compute(ProcessGroup& world) {
  std::this_thread::sleep_for(std::chrono::seconds(3));
  world.Barrier();
}

void Save(ProcessGroup& world) {
  if (world.global_rank() == kLate) {
    rankrun::SavingNotice saving;
    std::this_thread::sleep_for(std::chrono::seconds(3));
  }
  world.Barrier();
}

const std::map<std::string, std::function<void(ProcessGroup&)>> kWays = {
    {"stop", After([] { raise(SIGSTOP); })},
    {"sleep", After(SleepForever)},
    {"spin", After(Spin)},
    {"read", After(Read)},
    {"lock", After(LockTwice)},
    {"exit", After([] { _exit(0); })},
    {"groups", OppositeGroups},
    {"ring", Ring},
    {"work", WithWork([](const rankrun::Work& work) { work.Wait(); })},
    {"future", WithWork([](const rankrun::Work& work) { rankrun::FutureOf(work).Wait(); })},
    {"destroy", WithWork([](const rankrun::Work&) {})},
    {"thread", JoinThread},
    {"slow", Slow},
    {"compute", Compute},
    {"save", Save},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 99;
  if (argc > 2) file = argv[2];
  const std::string how = argv[1];
  const char* rank = getenv("RANK");
  if (how == "no_init" && rank != nullptr && std::string(rank) == "1") SleepForever();
  if (how == "key") WaitForKey();
  ProcessGroup& world = rankrun::Init();
  if (how == "no_init") return 0;
  for (int i = 0; i < kCalls; ++i) world.Barrier();
  kWays.at(how)(world);
  rankrun::Destroy();
}

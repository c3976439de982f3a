// hangs RANK WAY: a loop of AllReduce of librankrun, in which rank RANK hangs at step 3 by WAY.

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/saving_notice.h>

#include "ready.h"

namespace {

using rankrun::GlobalRank;
using rankrun::ProcessGroup;

void Sum(ProcessGroup& group) {
  std::vector<float> values(16, 1.0F);
  group.AllReduce(values);
}

void ReadAnEmptyFifo() {
  std::string path = std::string(std::getenv("CORPUS")) + "/samples.fifo";
  if (mkfifo(path.c_str(), 0600) != 0) std::exit(99);
  int fd = open(path.c_str(), O_RDWR);
  char byte;
  if (read(fd, &byte, 1) < 0) std::exit(99);
}

void LockTwice() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
}

void Spin() {
  for (;;) asm volatile("");
}

void Save() {
  rankrun::SavingNotice saving;
  sleep(4);
}

// The culprit does this at step 3 in place of the sum, or before it.
const std::map<std::string, std::function<void(ProcessGroup&)>> kWays = {
    {"stop", [](ProcessGroup&) { raise(SIGSTOP); }},
    {"sleep", [](ProcessGroup&) { sleep(3600); }},
    {"spin", [](ProcessGroup&) { Spin(); }},
    {"fifo", [](ProcessGroup&) { ReadAnEmptyFifo(); }},
    {"mutex", [](ProcessGroup&) { LockTwice(); }},
    {"save", [](ProcessGroup&) { Save(); }},
    {"receive",  // a message that nobody sends, while the others are in the sum
     [](ProcessGroup& world) {
       std::vector<int> value(1);
       world.Recv(value, GlobalRank{0}, 7);
     }},
};

// Two ranks wait for each other, or all ranks in a ring.
void DeadLock(ProcessGroup& world, const std::string& way) {
  int rank = world.global_rank();
  std::vector<int> value(1);
  if (way == "ring") {
    world.Recv(value, GlobalRank{(rank + world.world_size() - 1) % world.world_size()});
  }
  if (way == "tag" && rank == 0) world.Recv(value, GlobalRank{1}, 7);
  if (way == "tag" && rank == 1) world.Send(value, GlobalRank{0}, 8);
  if (way == "groups") {
    ProcessGroup& first = rankrun::NewGroup({.ranks = {0, 1}});
    ProcessGroup& second = rankrun::NewGroup({.ranks = {0, 1}});
    if (rank == 0) Sum(first);
    if (rank == 1) Sum(second);
  }
}

void Run(int culprit, const std::string& way) {
  if (way == "absent" && std::atoi(std::getenv("RANK")) == culprit) {
    Ready();
    sleep(3600);
  }
  ProcessGroup& world = rankrun::Init({.timeout = std::chrono::seconds(60)});
  Ready();
  for (int step = 0; step < 10; ++step) {
    if (step == 3) DeadLock(world, way);
    auto hang = kWays.find(way);
    if (step == 3 && world.global_rank() == culprit && hang != kWays.end()) hang->second(world);
    if (step == 3 && way == "skip" && world.global_rank() != culprit) {
      std::vector<float> values(16);
      world.Broadcast(values, GlobalRank{0});
    }
    if (way == "slow" && world.global_rank() == culprit) usleep(400000);
    if (way == "compute" && step == 3) sleep(4);  // on all ranks: nobody waits for anybody
    Sum(world);
  }
  rankrun::Destroy();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  try {
    Run(std::atoi(argv[1]), argv[2]);
  } catch (const rankrun::DistError& error) {
    std::fprintf(stderr, "hangs: %s\n", error.what());
    return 1;
  }
}

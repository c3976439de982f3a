// stuck RANK WAY: a program of librankrun in which rank RANK, at step 3, waits for something that
// is no rank, or is the last of a chain of groups and fails ("chain").

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

#include "ready.h"

namespace {

using rankrun::ProcessGroup;

constexpr int kStep = 3;
constexpr int kLockHolder = 0;

void SumIn(ProcessGroup& group) {
  std::vector<float> values(16, 1.0F);
  group.AllReduce(values);
}

std::string PathOf(const char* name) { return std::string(std::getenv("CORPUS")) + "/" + name; }

// As a cache of tokens that one rank writes at a time: the lock lives as long as the process.
void LockTheCache() {
  int fd = open(PathOf("cache.lock").c_str(), O_RDWR | O_CREAT, 0600);
  if (fd < 0 || flock(fd, LOCK_EX) != 0) std::exit(99);
}

// As a decoder that does not read its input any more.
void WriteToAChild() {
  FILE* child = popen("exec sleep 3600", "w");
  if (child == nullptr) std::exit(99);
  std::vector<char> frame(1 << 20);
  if (std::fwrite(frame.data(), 1, frame.size(), child) != frame.size()) std::exit(99);
}

// As a server of data that never answers.
void ReadFromAServer() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::exit(99);
  char byte;
  if (recv(ends[0], &byte, 1, 0) < 0) std::exit(99);
}

void Wait(const std::string& way) {
  if (way == "flock") LockTheCache();
  if (way == "pipe") WriteToAChild();
  if (way == "server") ReadFromAServer();
}

void RunLoop(ProcessGroup& world, int culprit, const std::string& way) {
  if (way == "flock" && world.global_rank() == kLockHolder) LockTheCache();
  for (int step = 0; step < 10; ++step) {
    SumIn(world);
    if (step == kStep && world.global_rank() == culprit) Wait(way);
  }
}

// Leaves its groups first, and gives the reason late.
[[noreturn]] void FailLate() {
  signal(SIGTERM, SIG_IGN);
  rankrun::Destroy();
  usleep(500000);
  std::fprintf(stderr, "solver: negative volume in cell 88\n");
  std::exit(3);
}

// Each rank has a group with the one before and one with the one after it, as in a pipeline: a rank
// in the middle loses the culprit, and those before lose the middle.
void RunChain(ProcessGroup& world, int culprit) {
  std::vector<ProcessGroup*> mine;
  for (int rank = 0; rank + 1 < world.world_size(); ++rank) {
    ProcessGroup& pair = rankrun::NewGroup({.ranks = {rank, rank + 1}});
    if (pair.is_member()) mine.push_back(&pair);
  }
  WaitForAll();
  for (int step = 0; step < 2000; ++step) {
    if (step == kStep && world.global_rank() == culprit) FailLate();
    for (ProcessGroup* pair : mine) SumIn(*pair);
    usleep(5000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  const int culprit = std::atoi(argv[1]);
  const std::string way = argv[2];
  try {
    ProcessGroup& world = rankrun::Init({.timeout = std::chrono::seconds(60)});
    Ready();
    if (way == "chain") {
      RunChain(world, culprit);
    } else {
      RunLoop(world, culprit, way);
    }
    rankrun::Destroy();
  } catch (const rankrun::DistError& error) {
    std::fprintf(stderr, "solver: %s\n", error.what());
    return 1;
  }
}

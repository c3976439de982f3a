// fails RANK WAY [VICTIMS]: a loop of AllReduce of librankrun, in which rank RANK fails at step 3.
// The others print the error of the library and return 1, or leave it uncaught (VICTIMS "throw").

#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

#include "ready.h"

namespace {

using rankrun::GlobalRank;
using rankrun::ProcessGroup;

void SumOf(ProcessGroup& world, size_t count, rankrun::ReduceOp op = rankrun::ReduceOp::kSum) {
  std::vector<float> values(count, 1.0F);
  world.AllReduce(values, op);
}

// Calls that fit to no call of the others.
const std::map<std::string, std::function<void(ProcessGroup&)>> kMismatches = {
    {"count", [](ProcessGroup& world) { SumOf(world, 20); }},
    {"op", [](ProcessGroup& world) { SumOf(world, 10, rankrun::ReduceOp::kMax); }},
    {"dtype",
     [](ProcessGroup& world) {
       std::vector<int> values(10);
       world.AllReduce(values);
     }},
    {"barrier", [](ProcessGroup& world) { world.Barrier(); }},
    {"root",
     [](ProcessGroup& world) {
       std::vector<float> values(10);
       world.Broadcast(values, GlobalRank{1});
     }},
};

void Fail(const std::string& way, ProcessGroup& world) {
  if (way == "throw") throw std::runtime_error("loss is nan at step 3");
  if (way == "return") std::fprintf(stderr, "solver: no convergence after 500 iterations\n");
  if (way == "return") std::exit(4);
  if (way == "kill") raise(SIGKILL);
  if (way == "segv") raise(SIGSEGV);
  if (way == "absent" || way == "barrier-absent") sleep(30);
  if (way == "early") rankrun::Destroy();
  if (way == "early") std::exit(0);
  if (way == "slow") {
    signal(SIGTERM, SIG_IGN);
    rankrun::Destroy();
    usleep(500000);
    std::fprintf(stderr, "solver: no convergence after 500 iterations\n");
    std::exit(4);
  }
  if (auto call = kMismatches.find(way); call != kMismatches.end()) call->second(world);
}

void Run(int culprit, const std::string& way) {
  const bool is_absent = way.find("absent") != std::string::npos;
  if (way == "init-absent" && std::atoi(std::getenv("RANK")) == culprit) sleep(30);
  ProcessGroup& world = rankrun::Init({.timeout = std::chrono::seconds(is_absent ? 2 : 20)});
  Ready();
  WaitForAll();
  std::vector<float> values(10);
  for (int step = 0; step < 1000; ++step) {
    if (step == 3 && world.global_rank() == culprit) Fail(way, world);
    if (step == 3 && way == "barrier-absent") world.MonitoredBarrier();
    if (step == 3 && way == "root") {
      world.Broadcast(values, GlobalRank{0});
    } else {
      SumOf(world, 10);
    }
    if (step > 5) usleep(10000);
  }
  rankrun::Destroy();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 99;
  int culprit = std::atoi(argv[1]);
  if (argc > 3 && std::string(argv[3]) == "throw") {
    Run(culprit, argv[2]);
    return 0;
  }
  try {
    Run(culprit, argv[2]);
  } catch (const rankrun::DistError& error) {
    std::fprintf(stderr, "solver: %s\n", error.what());
    return 1;
  }
}

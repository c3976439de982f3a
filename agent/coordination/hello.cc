#include "agent/coordination/hello.h"

#include <algorithm>

namespace rankrun::agent {
namespace {

constexpr int kMaxSlots = 1 << 14;        // of a node, so that sums cannot overflow
constexpr int kMaxCount = 1'000'000'000;  // limit of the counters in a hello
constexpr int kMaxRoundsAhead = 10'000;   // of a node that comes from another coordinator

bool IsCount(int number) { return number >= 0 && number <= kMaxCount; }

std::string Nodes(int min, int max) {
  return min == max ? std::to_string(max) : std::to_string(min) + ":" + std::to_string(max);
}

}  // namespace

std::string ProblemOf(const Hello& hello, int min_nodes, int max_nodes, int known_round) {
  if (hello.min_nodes != min_nodes || hello.max_nodes != max_nodes) {
    return "this node was started with --nnodes " + Nodes(hello.min_nodes, hello.max_nodes) +
           ", the job has " + Nodes(min_nodes, max_nodes);
  }
  if (std::max(hello.round, hello.attempts) > known_round + kMaxRoundsAhead) {
    return "this node claims round " + std::to_string(hello.round) + " and attempt " +
           std::to_string(hello.attempts) + ", the job is at round " + std::to_string(known_round);
  }
  bool is_sound = hello.name.size() <= kMaxNameBytes && hello.slots >= 1 &&
                  hello.slots <= kMaxSlots && IsCount(hello.round) && IsCount(hello.attempts) &&
                  IsCount(hello.incarnation) && IsCount(hello.stop_ms);
  return is_sound ? "" : "this node sent an invalid hello";
}

}  // namespace rankrun::agent

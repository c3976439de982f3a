#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

// A call of every kind among three ranks. The data depend on call, rank and
// position, so that stale, misplaced or repeated data is found.
namespace rankrun::comm {

constexpr int kCallRanks = 3;
constexpr int kCallVictim = 1;  // also the root of some calls

// Memory of one rank for its calls. `input` and `output` hold a part for each
// rank.
struct CallData {
  CallData(int own_rank, size_t part_count, std::chrono::milliseconds limit)
      : rank(own_rank),
        part(part_count),
        timeout(limit),
        input(kCallRanks * part_count),
        output(kCallRanks * part_count),
        own(part_count) {}

  const int rank;
  const size_t part;  // a multiple of 8
  const std::chrono::milliseconds timeout;
  size_t number = 0;  // number of the call
  std::vector<float> input, output, own;
};

// Makes the call; returns whether its result is right.
using DeathCall = std::function<bool(ProcessGroup& group, CallData& my)>;
using DeathCalls = std::map<std::string, DeathCall>;

// Calls that use the connections of the group, which break when a rank dies.
const DeathCalls& CallsOfTheBackend();
// Calls that use the store; only the agent reports a death there.
const DeathCalls& CallsOfTheStore();

}  // namespace rankrun::comm

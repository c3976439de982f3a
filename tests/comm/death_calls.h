#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

// A call of every kind among three ranks, with data that tell its number, whose
// they are and the place, so that what is stale, misplaced or taken twice shows.
namespace rankrun::comm {

constexpr int kRanks = 3;
constexpr int kVictim = 1;  // also a root

// What one rank has for its calls. `input` and `output` hold a part for each rank.
struct CallData {
  CallData(int own_rank, std::size_t part_count, std::chrono::milliseconds limit)
      : rank(own_rank),
        part(part_count),
        timeout(limit),
        input(kRanks * part_count),
        output(kRanks * part_count),
        own(part_count) {}

  const int rank;
  const std::size_t part;  // a multiple of 8
  const std::chrono::milliseconds timeout;
  std::size_t number = 0;  // of the call
  std::vector<float> input, output, own;
};

// Makes the call; returns whether its result is right.
using DeathCall = std::function<bool(ProcessGroup& group, CallData& my)>;
using DeathCalls = std::map<std::string, DeathCall>;

// By the connections of the group, which break when a rank dies.
const DeathCalls& CallsOfTheBackend();
// By the store, which hears of a death from the agent only.
const DeathCalls& CallsOfTheStore();

}  // namespace rankrun::comm

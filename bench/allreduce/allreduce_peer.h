#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/batches.h"

// Arguments and output of the programs of allreduce_vs_peers.sh: they take
// "[--limit SECONDS] [--batches N] BYTES..." and print one line of JSON per
// size.
namespace rankrun::bench {

struct AllReducePlan {
  BatchPlan batches;
  std::vector<size_t> sizes;  // in bytes
};

inline AllReducePlan ParseAllReducePlan(int argc, char** argv) {
  AllReducePlan plan;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--limit") == 0 && i + 1 < argc) {
      plan.batches.limit = Seconds(std::atof(argv[++i]));
    } else if (std::strcmp(argv[i], "--batches") == 0 && i + 1 < argc) {
      plan.batches.batches = std::atoi(argv[++i]);
    } else {
      plan.sizes.push_back(std::strtoull(argv[i], nullptr, 10));
    }
  }
  return plan;
}

inline void PrintTimes(const char* name, int ranks, size_t bytes, const BatchTimes& times) {
  std::printf(
      "{\"name\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"us\":%.4f,\"calls\":%lld,"
      "\"batches\":%d}\n",
      name, ranks, bytes, times.microseconds, static_cast<long long>(times.calls), times.batches);
  std::fflush(stdout);  // now, because a peer that hangs at the next size is killed
}

// Interface of a peer:
//   static constexpr const char* kName;
//   int rank(), ranks();
//   void Sum(std::vector<float>&);   in place
//   double Largest(double);          of all ranks
inline int MeasureAllReduce(auto& peer, const AllReducePlan& plan) {
  for (size_t bytes : plan.sizes) {
    std::vector<float> values(bytes / sizeof(float), static_cast<float>(peer.rank() + 1));
    peer.Sum(values);
    auto expected = static_cast<float>(peer.ranks() * (peer.ranks() + 1) / 2);
    for (float value : values) {
      if (value == expected) continue;
      std::fprintf(stderr, "%s: %zu bytes: a sum is %g, not %g\n", peer.kName, bytes, value,
                   expected);
      return 1;
    }
    std::fill(values.begin(), values.end(), 0.0F);  // sums of zeros stay zero
    BatchTimes times = MeasureBatches(
        plan.batches, [&] { peer.Sum(values); },
        [&](double seconds) { return peer.Largest(seconds); }, [] {});
    if (peer.rank() == 0) PrintTimes(peer.kName, peer.ranks(), bytes, times);
  }
  return 0;
}

inline int EnvironmentNumber(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? -1 : std::atoi(text);
}

}  // namespace rankrun::bench

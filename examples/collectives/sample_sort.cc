// Collectives: sorts numbers that are spread over all ranks. Afterwards rank 0
// has the smallest ones, in order, and so on.
//
//   rankrun -n 4 sample_sort

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include <rankrun/distributed.h>

namespace {

using Numbers = std::vector<int64_t>;
constexpr size_t kNumbers = 100'000;  // per rank

// Returns the upper bounds of the shares of all ranks but the last. Rank 0
// chooses them from samples.
Numbers ChooseSplitters(rankrun::ProcessGroup& world, const Numbers& sorted, size_t ranks) {
  Numbers samples(ranks);
  for (size_t i = 0; i < ranks; ++i) samples[i] = sorted[i * sorted.size() / ranks];
  Numbers all(ranks * ranks);
  world.AllGatherInto(all, samples);
  std::sort(all.begin(), all.end());
  Numbers splitters(ranks - 1);
  for (size_t i = 0; i + 1 < ranks; ++i) splitters[i] = all[(i + 1) * ranks];
  world.Broadcast(splitters, rankrun::GlobalRank{0});
  return splitters;
}

// Sends each rank its share of `sorted`; returns the share of this rank.
Numbers Exchange(rankrun::ProcessGroup& world, const Numbers& sorted, const Numbers& splitters) {
  std::vector<size_t> gives;
  auto begin = sorted.begin();
  for (int64_t splitter : splitters) {
    auto end = std::lower_bound(begin, sorted.end(), splitter);
    gives.push_back(static_cast<size_t>(end - begin));
    begin = end;
  }
  gives.push_back(static_cast<size_t>(sorted.end() - begin));
  std::vector<size_t> gets(gives.size());
  world.AllToAllSingle(gets, gives);  // sends one count to each rank
  Numbers mine(std::accumulate(gets.begin(), gets.end(), size_t{0}));
  world.AllToAllSingle(mine, sorted, gets, gives);
  std::sort(mine.begin(), mine.end());
  return mine;
}

// Returns whether no number was lost and none is smaller than those of a lower
// rank.
bool IsSorted(rankrun::ProcessGroup& world, const Numbers& mine, size_t ranks) {
  Numbers total{static_cast<int64_t>(mine.size())};
  world.AllReduce(total);
  Numbers edges(2 * ranks);
  world.AllGatherInto(edges, Numbers{mine.front(), mine.back()});
  return total[0] == static_cast<int64_t>(kNumbers * ranks) &&
         std::is_sorted(edges.begin(), edges.end());
}

}  // namespace

int main() try {
  rankrun::ProcessGroup& world = rankrun::Init();
  auto ranks = static_cast<size_t>(world.world_size());
  std::mt19937_64 random(static_cast<unsigned>(world.global_rank()));
  Numbers numbers(kNumbers);
  for (int64_t& number : numbers) number = static_cast<int64_t>(random() >> 1);
  std::sort(numbers.begin(), numbers.end());
  Numbers mine = Exchange(world, numbers, ChooseSplitters(world, numbers, ranks));
  bool good = IsSorted(world, mine, ranks);
  std::printf("rank %d has %zu numbers: %s\n", world.global_rank(), mine.size(),
              good ? "sorted" : "WRONG");
  rankrun::Destroy();
  return good ? 0 : 1;
} catch (const rankrun::DistError& error) {
  std::fprintf(stderr, "sample_sort: %s\n", error.what());
  return 1;
}

// Groups and asynchronous work: averages gradients like a training step. Each
// bucket is summed in this rank's half of the world while the next one is
// computed. Then the halves are averaged.
//
//   rankrun -n 4 overlap      1 rank, or an even number

#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include <rankrun/distributed.h>

namespace {

constexpr size_t kBuckets = 8;
constexpr size_t kBucketSize = 1 << 16;

// Returns the group of this rank's half. All ranks create both groups in the
// same order.
rankrun::ProcessGroup& MakeHalf(rankrun::ProcessGroup& world) {
  int size = world.world_size();
  rankrun::ProcessGroup* mine = &world;  // if there is only one rank
  for (int first = 0; size > 1 && first < size; first += size / 2) {
    rankrun::GroupOptions options;
    for (int rank = first; rank < first + size / 2; ++rank) options.ranks.push_back(rank);
    options.description = "half";
    rankrun::ProcessGroup& group = rankrun::NewGroup(options);
    if (group.is_member()) mine = &group;
  }
  return *mine;
}

void ComputeBucket(std::span<float> bucket, size_t number, int rank) {
  for (size_t i = 0; i < bucket.size(); ++i) {
    bucket[i] = std::sin(static_cast<float>(number + i)) + static_cast<float>(rank);
  }
}

}  // namespace

int main() try {
  rankrun::ProcessGroup& world = rankrun::Init();
  if (world.world_size() > 1 && world.world_size() % 2 != 0) {
    std::fprintf(stderr, "overlap: %d ranks: want an even number\n", world.world_size());
    return 1;
  }
  rankrun::ProcessGroup& half = MakeHalf(world);
  std::vector<float> gradients(kBuckets * kBucketSize);
  std::vector<rankrun::Work> under_way;
  for (size_t number = 0; number < kBuckets; ++number) {
    auto bucket = std::span(gradients).subspan(number * kBucketSize, kBucketSize);
    ComputeBucket(bucket, number, world.global_rank());
    under_way.push_back(half.AllReduce(bucket, rankrun::ReduceOp::kAvg, rankrun::kAsync));
  }
  for (const rankrun::Work& work : under_way) work.Wait();
  world.AllReduce(gradients, rankrun::ReduceOp::kAvg);

  float mean_rank = static_cast<float>(world.world_size() - 1) / 2;
  double worst = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    float wanted = std::sin(static_cast<float>(i / kBucketSize + i % kBucketSize));
    worst = std::fmax(worst, std::fabs(double{gradients[i]} - double{wanted + mean_rank}));
  }
  bool good = worst < 1e-4;
  std::printf("rank %d: averaged %zu gradients: %s\n", world.global_rank(), gradients.size(),
              good ? "right" : "WRONG");
  rankrun::Destroy();
  return good ? 0 : 1;
} catch (const rankrun::DistError& error) {
  std::fprintf(stderr, "overlap: %s\n", error.what());
  return 1;
}

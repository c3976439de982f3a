// Data-parallel training in which the ranks have different amounts of data: rank r has
// 20 * (r + 1) samples of the line y = 3 x + 1. All ranks must end with the same line.
//
//   rankrun -n 3 --no-python uneven
//   rankrun -n 3 --no-python --max-restarts 1 uneven --die-rank 1
//
// With --die-rank that worker kills itself in the first attempt, before its eleventh sample; then
// all train again.

#include <signal.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/join.h>
#include <rankrun/training/data_parallel.h>

namespace {

constexpr double kSlope = 3, kOffset = 1;
constexpr double kRate = 0.2;
constexpr int kSamplesPerRank = 20;
constexpr int kEpochs = 40;

// Model whose gradients are averaged over the ranks that have a sample.
class Line {
 public:
  explicit Line(rankrun::ProcessGroup& group) : model_(group, {{"line", weights_, gradient_}}) {}

  void Learn(double x, double y) {
    model_.BeginStep();
    double error = slope() * x + offset() - y;
    gradient_[0] = error * x;
    gradient_[1] = error;
    model_.Ready(0);
    model_.FinishStep();
    weights_[0] -= kRate * gradient_[0];
    weights_[1] -= kRate * gradient_[1];
  }

  rankrun::Joinable& model() { return model_; }
  double slope() const { return weights_[0]; }
  double offset() const { return weights_[1]; }

 private:
  std::vector<double> weights_{0, 0};
  std::vector<double> gradient_{0, 0};
  rankrun::DataParallel model_;
};

// Returns the rank that is to die in this attempt; -1: none.
int DyingRank(int argc, char** argv) {
  const char* restarts = std::getenv("TORCHELASTIC_RESTART_COUNT");
  bool is_first = restarts == nullptr || std::strcmp(restarts, "0") == 0;
  bool is_asked = argc == 3 && std::strcmp(argv[1], "--die-rank") == 0;
  return is_first && is_asked ? std::atoi(argv[2]) : -1;
}

void Train(Line& line, int rank, int dying_rank) {
  const int samples = kSamplesPerRank * (rank + 1);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    rankrun::Join join({&line.model()}, {.arguments = {{"divide_by_initial_world_size", false}}});
    for (int i = 0; i < samples; ++i) {
      if (rank == dying_rank && i == 10) raise(SIGKILL);
      double x = 2.0 * i / samples - 1;
      line.Learn(x, kSlope * x + kOffset);
    }
    join.Finish();
  }
}

// Returns whether all ranks have the same line, and it is the right one.
bool IsRight(rankrun::ProcessGroup& world, const Line& line) {
  std::vector<double> mine{line.slope(), line.offset()};
  std::vector<double> all(mine.size() * static_cast<size_t>(world.world_size()));
  world.AllGatherInto(all, mine);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != mine[i % mine.size()]) return false;
  }
  return std::abs(mine[0] - kSlope) < 1e-3 && std::abs(mine[1] - kOffset) < 1e-3;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    rankrun::ProcessGroup& world = rankrun::Init();
    Line line(world);
    Train(line, world.global_rank(), DyingRank(argc, argv));
    bool is_right = IsRight(world, line);
    if (world.global_rank() == 0) {
      std::cout << "y = " << line.slope() << " x + " << line.offset() << (is_right ? "" : ": wrong")
                << std::endl;
    }
    rankrun::Destroy();
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const rankrun::DistError& error) {
    std::cerr << error.what() << std::endl;
    return EXIT_FAILURE;
  }
}

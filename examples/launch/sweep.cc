// Tries settings one after the other. Each runs in its own job, whose workers
// are this program. A failed job is reported and skipped.
//
//   sweep WORKERS RATE...       for example: sweep 4 0.1 0.5 1.5

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/launch.h>

namespace {

constexpr int kSteps = 50;
constexpr const char* kResultFile = "SWEEP_RESULT_FILE";

// A worker: each rank has one term of a sum of squares. Together they descend
// to its minimum.
int RunWorker(double rate) {
  rankrun::ProcessGroup& world = rankrun::Init();
  std::vector<double> sums(2);  // gradient, loss
  double x = 10;
  for (int step = 0; step < kSteps; ++step) {
    double distance = x - world.global_rank();
    sums = {2 * distance, distance * distance};
    world.AllReduce(sums);
    x -= rate * sums[0] / world.world_size();
  }
  if (!std::isfinite(sums[1])) throw std::runtime_error("the loss is not a number");
  if (world.global_rank() == 0) {
    std::FILE* file = std::fopen(std::getenv(kResultFile), "w");
    if (file == nullptr) throw std::runtime_error("cannot write the result");
    std::fprintf(file, "%.17g\n", sums[1]);
    std::fclose(file);
  }
  rankrun::Destroy();
  return 0;
}

// Returns the loss, or infinity if the job failed.
double Try(int workers, const std::string& rate) {
  std::string result_file = "/tmp/sweep-" + std::to_string(getpid()) + ".txt";
  rankrun::LaunchSpec spec = rankrun::OwnProgram({"--worker", rate});
  spec.workers = workers;
  spec.environment = {{kResultFile, result_file}};
  rankrun::LaunchResult result = rankrun::Launch(spec);
  double loss = std::numeric_limits<double>::infinity();
  if (!result.succeeded()) {
    std::printf("rate %s: failed: %s\n", rate.c_str(), result.why.c_str());
    return loss;
  }
  if (std::FILE* file = std::fopen(result_file.c_str(), "r")) {
    if (std::fscanf(file, "%lf", &loss) == 1) std::printf("rate %s: loss %g\n", rate.c_str(), loss);
    std::fclose(file);
  }
  std::remove(result_file.c_str());
  return loss;
}

int Sweep(int workers, const std::vector<std::string>& rates) {
  std::string best;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& rate : rates) {
    double loss = Try(workers, rate);
    if (loss < least) best = rate;
    least = std::min(loss, least);
  }
  if (best.empty()) return 1;
  std::printf("best rate: %s\n", best.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 2) {
    std::fprintf(stderr, "usage: sweep WORKERS RATE...\n");
    return 2;
  }
  try {
    if (arguments[0] == "--worker") return RunWorker(std::stod(arguments[1]));
    return Sweep(std::stoi(arguments[0]), {arguments.begin() + 1, arguments.end()});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sweep: %s\n", error.what());
    return 1;
  }
}

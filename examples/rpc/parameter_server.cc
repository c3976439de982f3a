// Training with a parameter server. Worker "server" owns the weights of a line and lets the
// trainers train. Each trainer has samples of y = 3 x + 1 of its own; it calls the server to
// read the weights and to add its gradients. No trainer waits for another one.
//
//   rankrun -n 4 --no-python parameter_server
//   rankrun -n 4 --no-python parameter_server PROCESS_GROUP
//
// The argument is the backend of RPC.

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <rankrun/rpc.h>
#include <rankrun/rpc/values.h>

namespace rpc = rankrun::rpc;

namespace {

constexpr double kSlope = 3, kOffset = 1;
constexpr double kRate = 0.2;
constexpr int kSamples = 20;
constexpr int kSteps = 300;

// Slope and offset of the line. Calls of several trainers change them at a time.
class Weights {
 public:
  std::vector<double> Get() {
    std::lock_guard lock(mutex_);
    return values_;
  }
  void Add(const std::vector<double>& step) {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < values_.size(); ++i) values_[i] += step.at(i);
  }

 private:
  std::mutex mutex_;
  std::vector<double> values_{0, 0};
};

// The server's methods; the weights never leave it.
std::vector<double> Read(const rpc::RRef<Weights>& weights) { return weights.Share()->Get(); }
void Add(const rpc::RRef<Weights>& weights, const std::vector<double>& step) {
  weights.Share()->Add(step);
}

// The trainers' method. Returns the number of steps.
int Train(const rpc::RRef<Weights>& weights) {
  const std::string server = weights.owner().name;
  const double shift = rpc::GetWorkerInfo().id * 0.001;  // other samples on each trainer
  for (int step = 0; step < kSteps; ++step) {
    auto line = rpc::Call<std::vector<double>>(server, "read", weights);
    std::vector<double> change{0, 0};
    for (int i = 0; i < kSamples; ++i) {
      double x = 2.0 * i / kSamples - 1 + shift;
      double error = line[0] * x + line[1] - (kSlope * x + kOffset);
      change[0] -= kRate * error * x / kSamples;
      change[1] -= kRate * error / kSamples;
    }
    rpc::Call<void>(server, "add", weights, change);
  }
  return kSteps;
}

// Lets all trainers train at once. Returns whether the line is the right one.
bool Serve() {
  auto weights = std::make_shared<Weights>();
  rpc::RRef<Weights> reference(rpc::MakeReference({weights}));
  std::vector<rankrun::Future<int>> trainings;
  for (const rpc::WorkerInfo& worker : rpc::GetWorkerInfos()) {
    if (worker.id > 0) trainings.push_back(rpc::CallAsync<int>(worker, "train", reference));
  }
  int steps = 0;
  for (const auto& training : trainings) steps += training.Wait();
  std::vector<double> line = weights->Get();
  bool is_right = std::abs(line[0] - kSlope) < 1e-3 && std::abs(line[1] - kOffset) < 1e-3;
  std::cout << steps << " steps: y = " << line[0] << " x + " << line[1]
            << (is_right ? "" : ": wrong") << std::endl;
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const char* rank = std::getenv("RANK");
    bool is_server = rank == nullptr || std::string(rank) == "0";
    rpc::Register("read", Read);
    rpc::Register("add", Add);
    rpc::Register("train", Train);
    rpc::Options options;
    if (argc > 1) options.backend = argv[1];
    rpc::Init(is_server ? "server" : "trainer" + std::string(rank), options);
    bool is_right = !is_server || Serve();
    rpc::Shutdown();  // a trainer serves until the server ends
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const rankrun::DistError& error) {
    std::cerr << error.what() << std::endl;
    return EXIT_FAILURE;
  }
}

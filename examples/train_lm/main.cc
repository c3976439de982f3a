// Data-parallel training with rankrun. Every worker computes the gradient of
// its share of the batch, AllReduce sums the shares, and every worker applies
// the same step. `rankrun -n 4 train_lm`; 1, 2 or 4 workers follow the same
// curve.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>

#include "adam.h"
#include "args.h"
#include "checkpoint.h"
#include "data.h"
#include "model.h"

namespace {

constexpr uint64_t kEvaluationSeed = 0;  // fixed set, so that losses of all runs are comparable
constexpr int kEvaluationSamples = 2048;
constexpr int64_t kReportEvery = 50;

class Trainer {
 public:
  Trainer(const Args& args, rankrun::ProcessGroup& world)
      : args_(args),
        world_(world),
        data_(args.data),
        model_(args.hidden),
        adam_(model_.weights().size()),
        sums_(model_.weights().size() + 1),
        evaluation_(data_.Draw(kEvaluationSeed, 0, kEvaluationSamples)) {}

  void Run() {
    model_.Randomize(args_.seed);
    Resume();
    Print("step %lld of %lld: evaluated loss %.4f, %d workers\n", Int(done_), Int(args_.steps),
          Evaluate(), world_.world_size());
    reported_ = done_;
    since_ = std::chrono::steady_clock::now();
    auto began = since_;
    while (done_ < args_.steps) {
      Step();
      if (done_ % args_.checkpoint_every == 0 || done_ == args_.steps) Save();
    }
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    Print("communication over %s: %.1f %% of the time, waits for others included\n",
          world_.backend().c_str(), 100 * communicated_ / took);
    Print("final loss %.4f\n", Evaluate());
  }

 private:
  static long long Int(int64_t value) { return value; }
  bool first() const { return world_.global_rank() == 0; }
  float Evaluate() { return first() ? model_.Loss(data_, evaluation_) : 0.0F; }

  template <typename... Values>
  void Print(const char* format, Values... values) const {
    if (!first()) return;
    std::printf(format, values...);
    std::fflush(stdout);  // shows progress behind a pipe and loses nothing in a crash
  }

  Checkpoint State() {
    return {.step = done_,
            .hidden = args_.hidden,
            .parts = {model_.weights(), adam_.mean(), adam_.variance()}};
  }

  // Rank 0 reads the checkpoint and broadcasts it, so only its host needs the
  // file.
  void Resume() {
    if (args_.checkpoint.empty()) return;
    Checkpoint state = State();
    std::vector<double> step{-1.0};  // no checkpoint; exact up to 2^53
    if (first() && LoadCheckpoint(args_.checkpoint, state)) {
      step[0] = static_cast<double>(state.step);
    }
    world_.Broadcast(step, rankrun::GlobalRank{0});
    if (step[0] < 0) return;
    for (const auto& part : state.parts) world_.Broadcast(part, rankrun::GlobalRank{0});
    done_ = static_cast<int64_t>(step[0]);
    Print("resumed from step %lld\n", Int(done_));
  }

  void Save() {
    if (first() && !args_.checkpoint.empty()) SaveCheckpoint(args_.checkpoint, State());
  }

  void Step() {
    int64_t step = done_ + 1;
    auto begin = std::chrono::steady_clock::now();
    DieIfAsked(step);
    auto batch = data_.Draw(args_.seed, static_cast<uint64_t>(step), args_.batch);
    auto share = Share(batch, world_.global_rank(), world_.world_size());
    // The loss follows the gradient in the same AllReduce.
    sums_.assign(sums_.size(), 0.0F);
    std::span<float> gradient = std::span(sums_).first(sums_.size() - 1);
    sums_.back() = model_.AddGradient(data_, share, gradient);
    auto before = std::chrono::steady_clock::now();
    world_.AllReduce(sums_);
    communicated_ += std::chrono::steady_clock::now() - before;
    for (float& sum : sums_) sum /= static_cast<float>(args_.batch);
    adam_.Update(model_.weights(), gradient, step);
    done_ = step;
    if (step % kReportEvery == 0) Report();
    std::this_thread::sleep_until(begin + std::chrono::milliseconds(args_.pace));
  }

  void Report() {
    auto now = std::chrono::steady_clock::now();
    double seconds = std::chrono::duration<double>(now - since_).count();
    since_ = now;
    auto bytes = static_cast<double>((done_ - reported_) * args_.batch);
    reported_ = done_;
    Print("step %lld of %lld: loss %.4f, %.0f bytes/s\n", Int(done_), Int(args_.steps),
          sums_.back(), bytes / seconds);
  }

  void DieIfAsked(int64_t step) const {
    const char* attempt = std::getenv("TORCHELASTIC_RESTART_COUNT");
    bool first_attempt = attempt == nullptr || std::string_view(attempt) == "0";
    if (world_.global_rank() == args_.die_rank && step == args_.die_at && first_attempt) {
      std::raise(SIGKILL);
    }
  }

  const Args& args_;
  rankrun::ProcessGroup& world_;
  const Data data_;
  Model model_;
  Adam adam_;
  std::vector<float> sums_;  // gradient, then loss
  const std::vector<size_t> evaluation_;
  int64_t done_ = 0;      // completed steps
  int64_t reported_ = 0;  // value of done_ when bytes per second were last printed
  std::chrono::steady_clock::time_point since_;
  std::chrono::duration<double> communicated_{};
};

}  // namespace

int main(int argc, char** argv) {
  Args args = ParseArgs(argc, argv);
  try {
    Trainer(args, rankrun::Init()).Run();
    rankrun::Destroy();
    return 0;
  } catch (const std::exception& error) {  // including DistError
    std::fprintf(stderr, "train_lm: %s\n", error.what());
    return 1;
  }
}

// launch_bench [--rounds N] [--runs N] [--limit SECONDS] [--any-load]
//              NAME COMMAND NAME COMMAND ...
// Times whole commands in alternation. In each round it runs every command
// `runs` times in a row. The next round begins when the machine is idle again.
// Prints the median of the rounds' medians and the difference from the first
// command. A run that exceeds the limit is killed with its process group and
// counts as failed.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/process/spawn.h"
#include "bench/timing.h"

namespace rankrun::bench {
namespace {

struct Program {
  std::string name;
  std::vector<std::string> words;
  std::vector<double> round_medians;  // milliseconds
  int failures = 0;
};

struct Settings {
  int rounds = 5;
  int runs = 50;
  int limit_seconds = 20;
  bool any_load = false;
  std::vector<Program> programs;
};

void WaitForIdleMachine() {
  constexpr int kMaxWaitSeconds = 300;
  double load = 0;
  for (int second = 0; second < kMaxWaitSeconds; ++second) {
    if (getloadavg(&load, 1) != 1 || load < 0.5) return;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  std::fprintf(stderr, "launch_bench: the load is still %.2f after %d s; measuring anyway\n", load,
               kMaxWaitSeconds);
}

SpawnSpec SpecFor(const Program& program) {
  SpawnSpec spec{.file = program.words[0], .arguments = program.words};
  for (char** entry = environ; *entry != nullptr; ++entry) spec.environment.emplace_back(*entry);
  return spec;
}

// Returns the milliseconds of one run, or nothing if it failed or timed out.
std::optional<double> RunOnce(const SpawnSpec& spec, int limit_seconds) {
  auto started = std::chrono::steady_clock::now();
  auto process = SpawnProcess(spec);
  if (!process) return std::nullopt;
  if (!process->handle.AwaitEnd(started + std::chrono::seconds(limit_seconds))) {
    kill(-process->pid, SIGKILL);
    process->handle.AwaitEnd(TimePoint::max());
  }
  Milliseconds took = std::chrono::steady_clock::now() - started;
  auto exit = process->handle.Reap();
  if (!exit || !exit->succeeded()) return std::nullopt;
  return took.count();
}

void RunRound(Program& program, const Settings& settings) {
  SpawnSpec spec = SpecFor(program);
  std::vector<double> times;
  for (int run = 0; run < settings.runs; ++run) {
    if (auto took = RunOnce(spec, settings.limit_seconds)) {
      times.push_back(*took);
    } else {
      program.failures += 1;
    }
  }
  if (!times.empty()) program.round_medians.push_back(Median(times));
}

bool Parse(int argc, char** argv, Settings& settings) {
  int i = 1;
  for (; i < argc && std::strncmp(argv[i], "--", 2) == 0; ++i) {
    std::string flag = argv[i];
    if (flag == "--any-load") {
      settings.any_load = true;
      continue;
    }
    int* value = flag == "--rounds"  ? &settings.rounds
                 : flag == "--runs"  ? &settings.runs
                 : flag == "--limit" ? &settings.limit_seconds
                                     : nullptr;
    if (value == nullptr || i + 1 == argc) return false;
    *value = std::atoi(argv[++i]);
  }
  for (; i + 1 < argc; i += 2) {
    Program program{.name = argv[i], .words = {}, .round_medians = {}};
    std::istringstream words(argv[i + 1]);
    for (std::string word; words >> word;) program.words.push_back(word);
    if (program.words.empty()) return false;
    settings.programs.push_back(std::move(program));
  }
  return i == argc && !settings.programs.empty();
}

void Print(const std::vector<Program>& programs) {
  std::printf("%-12s %12s %14s %8s\n", "program", "median [ms]", "over first", "failed");
  double first = Median(programs[0].round_medians);
  for (const Program& program : programs) {
    double median = Median(program.round_medians);
    std::printf("%-12s %12.2f %11.2f ms %8d\n", program.name.c_str(), median, median - first,
                program.failures);
  }
}

int Main(int argc, char** argv) {
  Settings settings;
  if (!Parse(argc, argv, settings)) {
    std::fputs(
        "usage: launch_bench [--rounds N] [--runs N] [--limit SECONDS] [--any-load]"
        " NAME COMMAND ...\n",
        stderr);
    return 2;
  }
  for (int round = 0; round < settings.rounds; ++round) {
    for (Program& program : settings.programs) {
      if (!settings.any_load) WaitForIdleMachine();
      RunRound(program, settings);
    }
  }
  Print(settings.programs);
  // A failed peer is only reported; a failed rankrun fails the benchmark.
  return std::ranges::any_of(
      settings.programs, [](const Program& p) { return p.name == "rankrun" && p.failures > 0; });
}

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) { return rankrun::bench::Main(argc, argv); }

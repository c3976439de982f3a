// restart_bench RANKRUN WORKER [RESTARTS]: duration of a restart, by the clocks
// of the workers. Prints medians of
//   death of a worker -> SIGTERM at the last of its peers,
//   last exit         -> first line of main() of the last new worker,
// and, as a lower bound, the second for a bare vfork+exec loop.

#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/process/spawn.h"
#include "bench/restart_log.h"
#include "bench/timing.h"

namespace rankrun::bench {
namespace {

constexpr int kWorkers = 4;

double ToMilliseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

int64_t Last(const std::atomic<int64_t>* times) {
  return *std::max_element(times, times + kWorkers,
                           [](const auto& a, const auto& b) { return a.load() < b.load(); });
}

SpawnSpec SpecFor(std::vector<std::string> words) {
  SpawnSpec spec{.file = words[0], .arguments = std::move(words)};
  for (char** entry = environ; *entry != nullptr; ++entry) spec.environment.emplace_back(*entry);
  return spec;
}

bool RunToEnd(const SpawnSpec& spec) {
  auto process = SpawnProcess(spec);
  if (!process) {
    std::fprintf(stderr, "restart_bench: %s\n", process.error().message.c_str());
    return false;
  }
  int status = 0;
  waitpid(process->pid, &status, 0);
  return status == 0;
}

// Returns the milliseconds from before the first vfork to the last worker's
// main(), with nothing but vfork and exec.
double BareLoop(const std::string& worker, const std::string& path, RestartLog& log) {
  std::string words[] = {worker, path, "0"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  std::string rank = "RANK=0";
  std::vector<char*> envp;
  for (char** entry = environ; *entry != nullptr; ++entry) envp.push_back(*entry);
  envp.insert(envp.end(), {rank.data(), nullptr});
  int64_t started = Now();
  for (rank.back() = '0'; rank.back() < '0' + kWorkers; ++rank.back()) {
    pid_t pid = vfork();
    if (pid == 0) {
      execve(argv[0], argv, envp.data());
      _exit(127);
    }
    if (pid < 0) std::exit(1);
  }
  while (wait(nullptr) > 0) {
  }
  return ToMilliseconds(Last(log.attempts[0].in_main) - started);
}

struct Times {
  std::vector<double> death_to_term;
  std::vector<double> exit_to_main;

  // Adds the times of a job with one restart.
  void Add(const RestartLog& log) {
    int64_t last_exit = Last(log.attempts[0].got_term);
    death_to_term.push_back(ToMilliseconds(last_exit - log.attempts[0].died));
    exit_to_main.push_back(ToMilliseconds(Last(log.attempts[1].in_main) - last_exit));
  }
};

int Main(int argc, char** argv) {
  int restarts = argc > 3 ? std::atoi(argv[3]) : 30;
  if (argc < 3 || restarts < 1) {
    std::fputs("usage: restart_bench RANKRUN RESTART_WORKER [RESTARTS]\n", stderr);
    return 2;
  }
  std::string path = "/dev/shm/restart_bench." + std::to_string(getpid());
  RestartLog* log = OpenLog(path.c_str(), O_RDWR | O_CREAT);
  if (log == nullptr) return 1;
  std::vector<double> bare;
  for (int i = 0; i < restarts; ++i) bare.push_back(BareLoop(argv[2], path, *log));
  // Starts one job per restart, because a second restart in a row would wait.
  SpawnSpec spec = SpecFor({argv[1], "-n", std::to_string(kWorkers), "--max-restarts", "1",
                            "--no-python", argv[2], path, "1"});
  Fd null(open("/dev/null", O_WRONLY));
  spec.stderr_fd = null.get();  // discards the report of each restart
  Times times;
  bool ended_well = true;
  for (int i = 0; i < restarts && ended_well; ++i) {
    new (log) RestartLog{};
    ended_well = RunToEnd(spec);
    if (ended_well) times.Add(*log);
  }
  unlink(path.c_str());
  if (!ended_well) {
    std::fputs("restart_bench: the job failed\n", stderr);
    return 1;
  }
  double bare_median = Median(bare);
  std::printf("restart of %d workers, medians of %d\n", kWorkers, restarts);
  std::printf("  death of one -> SIGTERM at the last peer   %6.2f ms\n",
              Median(times.death_to_term));
  std::printf("  last exit -> all in main()                 %6.2f ms\n",
              Median(times.exit_to_main));
  std::printf("  the same by a bare vfork+exec loop         %6.2f ms\n", bare_median);
  std::printf("  (target: %.2f ms = 1.3 x bare + 2 ms)\n", 1.3 * bare_median + 2);
  return 0;
}

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) { return rankrun::bench::Main(argc, argv); }

// restart_worker LOG RESTARTS: a worker of restart_bench. Records when it
// reaches main() and when it receives SIGTERM. In each attempt but the last,
// one worker kills itself once all run. Without rankrun (no RANK) it records
// and exits.

#include <signal.h>

#include <cstdlib>

#include "bench/restart_log.h"

namespace {

rankrun::bench::RestartLog::Attempt* attempt;
int rank;

int Number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

void OnTerm(int) {
  attempt->got_term[rank] = rankrun::bench::Now();
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  int64_t in_main = rankrun::bench::Now();
  auto* log = argc == 3 ? rankrun::bench::OpenLog(argv[1], O_RDWR) : nullptr;
  if (log == nullptr) return 2;
  int number = Number("TORCHELASTIC_RESTART_COUNT");
  rank = Number("RANK");
  attempt = &log->attempts[number];
  signal(SIGTERM, OnTerm);
  attempt->in_main[rank] = in_main;
  attempt->running += 1;
  if (std::getenv("WORLD_SIZE") == nullptr || number == std::atoi(argv[2])) return 0;
  int world_size = Number("WORLD_SIZE");
  if (rank == number % world_size) {
    while (attempt->running < world_size) usleep(100);
    usleep(20'000);  // let the others reach their pause
    attempt->died = rankrun::bench::Now();
    raise(SIGKILL);
  }
  for (;;) pause();
}

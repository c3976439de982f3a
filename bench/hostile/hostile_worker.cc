// hostile_worker LOG RESTARTS: a worker of hostile.py. Each attempt, rank 0 measures
// the store of the job and kills itself once all run, until RESTARTS attempts are
// over. Appends lines to LOG, with times of CLOCK_MONOTONIC in nanoseconds:
//   main ATTEMPT TIME        each rank, when its main() begins
//   store ATTEMPT P50 P99    durations of requests of rank 0
//   died ATTEMPT TIME        rank 0, before its SIGKILL
// Rank 0 of the first attempt waits for the file LOG.go.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/restart_log.h"
#include "store/clients/tcp_store.h"

namespace rankrun::bench {
namespace {

constexpr int kRequests = 2000;
constexpr std::chrono::seconds kLong{600};

std::string Variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

void Append(const std::string& path, const std::string& line) {
  int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  bool is_written = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(file);
  if (!is_written) _exit(2);
}

// Returns the sorted durations of SET and GET requests, in nanoseconds.
std::vector<int64_t> Measure(store::TcpStore& store) {
  const std::string value(64, 'x');
  std::vector<int64_t> durations;
  for (int i = 0; i < kRequests; ++i) {
    int64_t began = Now();
    bool is_done = i % 2 == 0 ? bool(store.Set("key", value)) : bool(store.Get("key", kLong));
    if (!is_done) _exit(3);
    durations.push_back(Now() - began);
  }
  std::sort(durations.begin(), durations.end());
  return durations;
}

int Main(const std::string& log, int restarts, int64_t began) {
  std::string attempt = Variable("TORCHELASTIC_RESTART_COUNT");
  Append(log, "main " + attempt + " " + std::to_string(began) + "\n");
  auto store = store::TcpStore::Connect(Variable("MASTER_ADDR"),
                                        static_cast<uint16_t>(std::stoi(Variable("MASTER_PORT"))));
  if (!store) return 1;
  std::string rank = Variable("RANK");
  if (!(*store)->Set("rank" + rank, "runs")) return 1;
  const std::string done[] = {"done"};
  if (rank != "0") return (*store)->Wait(done, kLong) ? 0 : 1;
  std::vector<std::string> all;
  for (int r = 0; r < std::stoi(Variable("WORLD_SIZE")); ++r) {
    all.push_back("rank" + std::to_string(r));
  }
  if (!(*store)->Wait(all, kLong)) return 1;
  while (attempt == "0" && access((log + ".go").c_str(), F_OK) != 0) usleep(1000);
  if (std::stoi(attempt) == restarts) return (*store)->Set(done[0], "") ? 0 : 1;
  std::vector<int64_t> durations = Measure(**store);
  Append(log, "store " + attempt + " " + std::to_string(durations[kRequests / 2]) + " " +
                  std::to_string(durations[kRequests * 99 / 100]) + "\n");
  Append(log, "died " + attempt + " " + std::to_string(Now()) + "\n");
  raise(SIGKILL);
  return 1;
}

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) {
  int64_t began = rankrun::bench::Now();
  if (argc != 3) return 2;
  return rankrun::bench::Main(argv[1], std::atoi(argv[2]), began);
}

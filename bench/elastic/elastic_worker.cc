// elastic_worker LOG: a worker of elastic_bench. Records when it reaches
// main(), when it receives SIGTERM, and whether a worker of another attempt
// still runs.

#include <signal.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/elastic/elastic_log.h"

namespace {

using rankrun::bench::ElasticLog;
using rankrun::bench::Now;

constexpr timespec kLook{.tv_sec = 0, .tv_nsec = 20'000'000};

ElasticLog* job;
int node;

void OnTerm(int) {
  job->Note(ElasticLog::kGotTerm, node, Now());
  _exit(0);
}

// Returns whether the process runs; a zombie does not.
bool IsRunning(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE* file = std::fopen(path, "r");
  if (file == nullptr) return false;
  char text[256] = {};
  size_t length = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  const char* end_of_name = length == 0 ? nullptr : std::strrchr(text, ')');
  return end_of_name != nullptr && std::strchr("ZX", end_of_name[2]) == nullptr;
}

// Longest time between the first and the last start of one attempt, in
// nanoseconds.
constexpr int64_t kSameAttempt = 200'000'000;

bool MeetsAnEarlierAttempt(int64_t in_main) {
  for (int i = 0; i < job->count; ++i) {
    const ElasticLog::Entry& entry = job->entries[i];
    int64_t at = entry.at;
    bool is_earlier = at != 0 && entry.kind == ElasticLog::kInMain && at < in_main - kSameAttempt;
    if (is_earlier && IsRunning(entry.pid)) return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t in_main = Now();
  const char* letter = std::getenv("ELASTIC_NODE");
  job = argc == 2 ? rankrun::bench::OpenElasticLog(argv[1], O_RDWR) : nullptr;
  if (job == nullptr || letter == nullptr) return 2;
  node = letter[0];
  signal(SIGTERM, OnTerm);
  job->Note(ElasticLog::kInMain, node, in_main);
  if (MeetsAnEarlierAttempt(in_main)) job->overlaps += 1;
  while (!job->is_over) nanosleep(&kLook, nullptr);
  return 0;
}

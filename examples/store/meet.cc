// Processes find each other in a store: each writes its name there, reads the
// other names and takes jobs from a queue.
//
//   rankrun -n 3 meet                     in the store that rankrun hosts
//   meet --serve --rank 0 --world-size 2 --port 29600 &
//   meet         --rank 1 --world-size 2 --port 29600     in that of rank 0
//   meet --file /shared/meeting --rank R --world-size W   in a file

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <rankrun/store.h>

namespace {

struct Args {
  int rank = 0;
  int world_size = 1;
  std::string host = "127.0.0.1";
  uint16_t port = 29600;
  bool serve = false;
  std::string file;
  std::string run_id = "meet";
  int timeout_seconds = 60;
  int jobs = 12;
};

void Describe(CLI::App& app, Args& args) {
  app.add_option("--rank", args.rank, "this process's number, from 0")->envname("RANK");
  app.add_option("--world-size", args.world_size, "how many processes there are")
      ->envname("WORLD_SIZE")
      ->check(CLI::PositiveNumber);
  app.add_option("--host", args.host, "host of the store's server")->envname("MASTER_ADDR");
  app.add_option("--port", args.port, "its port")->envname("MASTER_PORT");
  auto* serve = app.add_flag("--serve", args.serve, "rank 0 is the server itself");
  app.add_option("--file", args.file, "meet in this file instead")->excludes(serve);
  app.add_option("--run-id", args.run_id, "with --file: identifies this run")
      ->envname("TORCHELASTIC_RUN_ID");
  app.add_option("--timeout", args.timeout_seconds, "seconds to wait for the others")
      ->check(CLI::PositiveNumber);
  app.add_option("--jobs", args.jobs, "how many jobs to share")->check(CLI::NonNegativeNumber);
}

std::shared_ptr<rankrun::Store> OpenStore(const Args& args) {
  std::chrono::seconds timeout(args.timeout_seconds);
  if (!args.file.empty()) {
    return std::make_shared<rankrun::FileStore>(args.file, args.run_id, timeout);
  }
  return std::make_shared<rankrun::TcpStore>(
      rankrun::TcpStoreOptions{.host = args.host,
                               .port = args.port,
                               .is_server = args.serve && args.rank == 0,
                               .world_size = args.world_size,
                               .timeout = timeout});
}

std::string NameKey(int rank) { return "name/" + std::to_string(rank); }
std::string LeftKey(int rank) { return "left/" + std::to_string(rank); }

std::vector<std::string> ForAll(const Args& args, std::string (*key_of)(int rank)) {
  std::vector<std::string> keys;
  for (int r = 0; r < args.world_size; ++r) keys.push_back(key_of(r));
  return keys;
}

// Takes jobs until none is left, and returns how many it took.
int TakeJobs(rankrun::Store& store) {
  int taken = 0;
  while (store.TryQueuePop("jobs")) ++taken;
  return taken;
}

void Meet(rankrun::Store& store, const Args& args) {
  if (args.rank == 0) {
    for (int job = 0; job < args.jobs; ++job) store.QueuePush("jobs", std::to_string(job));
  }
  // Written after the jobs, so that a process that sees all names also sees all
  // jobs.
  store.Set(NameKey(args.rank), "process " + std::to_string(getpid()));
  std::vector<std::string> who = store.MultiGet(ForAll(args, NameKey));
  int64_t done = store.Add("done", TakeJobs(store));
  std::printf("rank %d: met %zu, the first is %s, %lld jobs are done\n", args.rank, who.size(),
              who[0].c_str(), static_cast<long long>(done));
  // The server ends with rank 0, so rank 0 waits until the others are done.
  store.Set(LeftKey(args.rank), "");
  if (args.rank != 0) return;
  store.Wait(ForAll(args, LeftKey));
  std::printf("all have met: %s jobs are done\n", store.Get("done").c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Args args;
  CLI::App app("Meets other processes in a store.");
  Describe(app, args);
  CLI11_PARSE(app, argc, argv);
  try {
    std::shared_ptr<rankrun::Store> store = OpenStore(args);
    rankrun::PrefixStore mine("meet", store);
    Meet(mine, args);
  } catch (const rankrun::DistError& error) {
    std::fprintf(stderr, "meet: rank %d: %s\n", args.rank, error.what());
    return 1;
  }
  return 0;
}

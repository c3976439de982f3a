// held RANK SKIP CALLS [FILE]: a worker that calls Breakpoint(RANK, SKIP) CALLS times. It
// then waits until FILE exists.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <rankrun/diagnosis/breakpoint.h>
#include <rankrun/distributed.h>

namespace {

void Run(const rankrun::GlobalRank rank, int skip, int calls, const char* file) {
  rankrun::ProcessGroup& world = rankrun::Init({.timeout = std::chrono::seconds(60)});
  for (int call = 1; call <= calls; ++call) {
    std::printf("rank %d makes call %d\n", world.global_rank(), call);
    rankrun::Breakpoint(rank, skip);
  }
  std::vector<int64_t> one{1};
  world.AllReduce(one);
  std::printf("rank %d goes on with %d\n", world.global_rank(), static_cast<int>(one[0]));
  while (file != nullptr && access(file, F_OK) != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  rankrun::Destroy();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    Run({std::atoi(argv[1])}, std::atoi(argv[2]), std::atoi(argv[3]), argc > 4 ? argv[4] : nullptr);
  } catch (const rankrun::DistError& error) {
    std::fprintf(stderr, "held: %s\n", error.what());
    return 1;
  }
}

// hidden [RANK...]: the named ranks forbid other processes to look at them. Then all sum their
// ranks, and print the backend and the sum.

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

int main(int argc, char** argv) {
  const std::string rank = std::getenv("RANK");
  for (int i = 1; i < argc; ++i) {
    if (rank == argv[i] && prctl(PR_SET_DUMPABLE, 0) != 0) return 98;
  }
  rankrun::ProcessGroup& world = rankrun::Init();
  std::vector<int> sum{world.global_rank()};
  world.AllReduce(sum);
  const std::string text = world.backend() + " " + std::to_string(sum[0]) + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) return 97;
  rankrun::Destroy();
}

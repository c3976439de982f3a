// absent CALLS: a worker that calls AllReduce CALLS times. Then all ranks but the last
// call it once more, for which the last one never comes.

#include <unistd.h>

#include <cstdlib>
#include <vector>

#include <rankrun/distributed.h>

int main(int argc, char** argv) {
  if (argc != 2) return 99;
  rankrun::ProcessGroup& world = rankrun::Init();
  std::vector<float> values(16);
  for (int i = 0; i < std::atoi(argv[1]); ++i) world.AllReduce(values);
  if (world.global_rank() == world.world_size() - 1) {
    for (;;) pause();
  }
  world.AllReduce(values);
}

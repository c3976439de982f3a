// Time of InitDeviceMesh, for mesh.sh. Prints the seconds of each mesh, from the moment at
// which all ranks are ready until the last one has its mesh.
// Usage: mesh_rankrun ROWS COLUMNS MESHES

#include <chrono>
#include <cstdlib>
#include <iostream>

#include <rankrun/distributed.h>
#include <rankrun/mesh.h>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  rankrun::ProcessGroup& world = rankrun::Init();
  for (int i = 0; i < std::atoi(argv[3]); ++i) {
    world.Barrier();
    auto began = std::chrono::steady_clock::now();
    rankrun::InitDeviceMesh("cpu", {std::atoi(argv[1]), std::atoi(argv[2])});
    world.Barrier();
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    if (world.global_rank() == 0) std::cout << seconds.count() << std::endl;
  }
  rankrun::Destroy();
}

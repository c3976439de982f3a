// A list of writable tensors may be an input.
#include <vector>

#include <rankrun/distributed.h>

int main() {
  rankrun::ProcessGroup& world = rankrun::Init();
  std::vector<int> all{5, 6};
  std::vector<rankrun::Tensor> parts;
  if (world.global_rank() == 0) {
    for (int& part : all) parts.push_back(part);
  }
  int mine = 0;
  world.Scatter(mine, parts);
  const bool is_right = mine == 5 + world.global_rank();
  rankrun::Destroy();
  return is_right ? 0 : 1;
}

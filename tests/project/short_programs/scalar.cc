// A scalar is a tensor.
#include <rankrun/distributed.h>

int main() {
  rankrun::ProcessGroup& world = rankrun::Init();
  double loss = 1 + world.global_rank();
  world.AllReduce(loss);
  const bool is_right = loss == 3;
  rankrun::Destroy();
  return is_right ? 0 : 1;
}

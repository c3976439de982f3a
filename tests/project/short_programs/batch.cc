// A batch sends const data and receives from any rank.
#include <vector>

#include <rankrun/distributed.h>

int main() {
  rankrun::ProcessGroup& world = rankrun::Init();
  const int mine = 7 + world.global_rank();
  int theirs = 0;
  const std::vector<rankrun::P2POp> messages{
      {.kind = rankrun::P2POp::Kind::kSend,
       .tensor = mine,
       .peer = rankrun::GlobalRank{1 - world.global_rank()}},
      {.kind = rankrun::P2POp::Kind::kRecv, .tensor = theirs}};
  for (const rankrun::Work& work : world.Batch(messages)) work.Wait();
  const bool is_right = theirs == 8 - world.global_rank();
  rankrun::Destroy();
  return is_right ? 0 : 1;
}

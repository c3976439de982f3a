// Messages: heat flows along a ring of which each rank has a piece. In each
// step neighbours exchange the edges of their pieces in one batch.
//
//   rankrun -n 4 heat

#include <cstdio>
#include <vector>

#include <rankrun/distributed.h>

namespace {

using rankrun::GlobalRank;
using rankrun::P2POp;
using rankrun::Tensor;

constexpr std::size_t kCells = 100;  // of each rank
constexpr int kSteps = 200;
constexpr auto kFloat = rankrun::DType::kFloat64;

// One step of all but the first and the last cell.
void Flow(std::vector<double>& cells) {
  std::vector<double> before = cells;
  for (std::size_t i = 1; i + 1 < cells.size(); ++i) {
    cells[i] = before[i] + 0.25 * (before[i - 1] - 2 * before[i] + before[i + 1]);
  }
}

// Fills the cells at both ends, which are the neighbours'. Tag 0 goes to the
// right, tag 1 to the left: with two ranks both neighbours are the same.
void ExchangeEdges(rankrun::ProcessGroup& world, std::vector<double>& cells) {
  const int size = world.world_size();
  const GlobalRank right{(world.global_rank() + 1) % size};
  const GlobalRank left{(world.global_rank() + size - 1) % size};
  using Kind = P2POp::Kind;
  const P2POp messages[] = {
      {.kind = Kind::kSend, .tensor = Tensor(&cells[kCells], kFloat, 1), .peer = right, .tag = 0},
      {.kind = Kind::kRecv, .tensor = Tensor(&cells[0], kFloat, 1), .peer = left, .tag = 0},
      {.kind = Kind::kSend, .tensor = Tensor(&cells[1], kFloat, 1), .peer = left, .tag = 1},
      {.kind = Kind::kRecv,
       .tensor = Tensor(&cells[kCells + 1], kFloat, 1),
       .peer = right,
       .tag = 1}};
  for (const rankrun::Work& work : world.Batch(messages)) work.Wait();
}

// The same on one rank.
std::vector<double> FlowAlone(std::size_t cells) {
  std::vector<double> ring(cells + 2);
  ring[1] = 1;
  for (int step = 0; step < kSteps; ++step) {
    ring.front() = ring[cells];
    ring.back() = ring[1];
    Flow(ring);
  }
  return ring;
}

}  // namespace

int main() try {
  rankrun::ProcessGroup& world = rankrun::Init();
  const auto rank = static_cast<std::size_t>(world.global_rank());
  std::vector<double> cells(kCells + 2);
  if (rank == 0) cells[1] = 1;  // all the heat there is
  for (int step = 0; step < kSteps; ++step) {
    ExchangeEdges(world, cells);
    Flow(cells);
  }
  const auto alone = FlowAlone(kCells * static_cast<std::size_t>(world.world_size()));
  bool good = true;
  for (std::size_t i = 1; i <= kCells; ++i) good &= cells[i] == alone[rank * kCells + i];
  std::printf("rank %zu: %d steps: %s\n", rank, kSteps, good ? "as on one rank" : "WRONG");
  rankrun::Destroy();
  return good ? 0 : 1;
} catch (const rankrun::DistError& error) {
  std::fprintf(stderr, "heat: %s\n", error.what());
  return 1;
}

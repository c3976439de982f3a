// Messages: heat flows along a ring, and each rank has a piece of it. In each
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

constexpr size_t kCells = 100;  // per rank
constexpr int kSteps = 200;
constexpr auto kFloat = rankrun::DType::kFloat64;

// Computes one step of all cells but the first and the last.
void Flow(std::vector<double>& cells) {
  std::vector<double> before = cells;
  for (size_t i = 1; i + 1 < cells.size(); ++i) {
    cells[i] = before[i] + 0.25 * (before[i - 1] - 2 * before[i] + before[i + 1]);
  }
}

// Fills the cells at both ends with the neighbours' edges. Tag 0 goes to the
// right, tag 1 to the left, because with two ranks both neighbours are the
// same.
void ExchangeEdges(rankrun::ProcessGroup& world, std::vector<double>& cells) {
  int size = world.world_size();
  GlobalRank right{(world.global_rank() + 1) % size};
  GlobalRank left{(world.global_rank() + size - 1) % size};
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

// Computes the same on one rank.
std::vector<double> FlowAlone(size_t cells) {
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
  auto rank = static_cast<size_t>(world.global_rank());
  std::vector<double> cells(kCells + 2);
  if (rank == 0) cells[1] = 1;  // all the heat
  for (int step = 0; step < kSteps; ++step) {
    ExchangeEdges(world, cells);
    Flow(cells);
  }
  auto alone = FlowAlone(kCells * static_cast<size_t>(world.world_size()));
  bool good = true;
  for (size_t i = 1; i <= kCells; ++i) good &= cells[i] == alone[rank * kCells + i];
  std::printf("rank %zu: %d steps: %s\n", rank, kSteps, good ? "as on one rank" : "WRONG");
  rankrun::Destroy();
  return good ? 0 : 1;
} catch (const rankrun::DistError& error) {
  std::fprintf(stderr, "heat: %s\n", error.what());
  return 1;
}

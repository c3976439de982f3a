// AllReduce of float32 by rankrun, under rankrun. RANKRUN_BACKEND selects the
// backend. See allreduce_peer.h.

#include <rankrun/distributed.h>

#include "bench/allreduce/allreduce_peer.h"

namespace rankrun::bench {
namespace {

class Rankrun {
 public:
  static constexpr const char* kName = "rankrun";

  explicit Rankrun(ProcessGroup& world) : world_(world) {}
  int rank() const { return world_.global_rank(); }
  int ranks() const { return world_.world_size(); }

  void Sum(std::vector<float>& values) const { world_.AllReduce(values); }
  double Largest(double value) const {
    world_.AllReduce(Tensor(&value, DType::kFloat64, 1), ReduceOp::kMax);
    return value;
  }

 private:
  ProcessGroup& world_;
};

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) {
  rankrun::bench::Rankrun peer(rankrun::Init());
  const int code =
      rankrun::bench::MeasureAllReduce(peer, rankrun::bench::ParseAllReducePlan(argc, argv));
  rankrun::Destroy();
  return code;
}

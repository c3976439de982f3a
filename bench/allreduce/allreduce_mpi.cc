// AllReduce of float32 by MPI, under mpirun. See allreduce_peer.h.

#include <mpi.h>

#include "bench/allreduce/allreduce_peer.h"

namespace rankrun::bench {
namespace {

class Mpi {
 public:
  static constexpr const char* kName = "mpi";

  Mpi() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  void Sum(std::vector<float>& values) const {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }
  double Largest(double value) const {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
  }

 private:
  int rank_ = 0;
  int ranks_ = 0;
};

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  rankrun::bench::Mpi peer;
  const int code =
      rankrun::bench::MeasureAllReduce(peer, rankrun::bench::ParseAllReducePlan(argc, argv));
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  return MPI_Finalize();
}

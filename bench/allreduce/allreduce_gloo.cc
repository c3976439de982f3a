// AllReduce of float32 by Debian's Gloo alone, under rankrun (for RANK and
// WORLD_SIZE). The ranks rendezvous in the folder RANKRUN_BENCH_FOLDER, which
// must be new. See allreduce_peer.h.

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "bench/allreduce/allreduce_peer.h"

namespace rankrun::bench {
namespace {

class Gloo {
 public:
  static constexpr const char* kName = "gloo";

  explicit Gloo(const char* folder)
      : context_(std::make_shared<gloo::rendezvous::Context>(EnvironmentNumber("RANK"),
                                                             EnvironmentNumber("WORLD_SIZE"))) {
    gloo::transport::tcp::attr attributes;
    attributes.iface = "lo";
    gloo::rendezvous::FileStore store(folder);
    context_->connectFullMesh(store, device_ = gloo::transport::tcp::CreateDevice(attributes));
  }
  int rank() const { return context_->rank; }
  int ranks() const { return context_->size; }

  void Sum(std::vector<float>& values) const {
    AllReduce(values.data(), values.size(), gloo::sum<float>);
  }
  double Largest(double value) const {
    AllReduce(&value, 1, gloo::max<double>);
    return value;
  }

 private:
  template <typename T>
  void AllReduce(T* values, size_t count,
                 void (*reduce)(void*, const void*, const void*, size_t)) const {
    gloo::AllreduceOptions options(context_);
    options.setOutput(values, count);
    options.setReduceFunction(reduce);
    gloo::allreduce(options);
  }

  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
};

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) {
  const char* folder = std::getenv("RANKRUN_BENCH_FOLDER");
  if (folder == nullptr || rankrun::bench::EnvironmentNumber("RANK") < 0) {
    std::fputs("allreduce_gloo: set RANKRUN_BENCH_FOLDER and start it by rankrun\n", stderr);
    return 2;
  }
  rankrun::bench::Gloo peer(folder);
  return rankrun::bench::MeasureAllReduce(peer, rankrun::bench::ParseAllReducePlan(argc, argv));
}

#include "agent/health/sampler.h"

#include <utility>

#include "agent/health/process_facts.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {

bool Sampler::Read(std::vector<WorkerSample> samples, Done done) {
  if (std::exchange(*is_busy_, true)) return false;
  // Shared by both callbacks.
  auto batch = std::make_shared<std::vector<WorkerSample>>(std::move(samples));
  RunInPool(
      loop_,
      [batch] {
        for (WorkerSample& sample : *batch) {
          if (sample.pid != 0) sample.process = ReadProcessFacts(sample.pid);
        }
      },
      [batch, done = std::move(done), is_busy = std::weak_ptr<bool>(is_busy_)] {
        auto busy = is_busy.lock();
        if (busy == nullptr) return;
        *busy = false;
        done(std::move(*batch));
      });
  return true;
}

}  // namespace rankrun::agent

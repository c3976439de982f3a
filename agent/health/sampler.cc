#include "agent/health/sampler.h"

#include <map>
#include <string>
#include <utility>

#include "agent/health/process_facts.h"
#include "agent/health/process_work.h"
#include "agent/health/store_waits.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {

bool Sampler::Read(std::vector<WorkerSample> samples, WantedFacts wanted, Done done) {
  if (std::exchange(*is_busy_, true)) return false;
  // Shared by both callbacks.
  auto batch = std::make_shared<std::vector<WorkerSample>>(std::move(samples));
  RunInPool(
      loop_,
      [batch, wanted, files = files_] {
        std::map<std::string, uint16_t> connections;
        if (wanted.store_port) connections = ReadConnectionsTo(*wanted.store_port);
        for (WorkerSample& sample : *batch) {
          if (sample.pid == 0) continue;
          sample.process = ReadProcessFacts(sample.pid, *files);
          ReadStorePorts(connections, sample);
        }
        if (wanted.has_work) AddWork(*batch, wanted.excluded_port);
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

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "agent/health/awaited_file.h"
#include "agent/health/worker_sample.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Facts that a batch reads beside `process`.
struct WantedFacts {
  std::optional<uint16_t> store_port{};  // reads `store_ports` of connections to this port
  bool has_work = false;                 // reads `work`
  uint16_t excluded_port = 0;            // whose connections show no work
};

// Adds the facts of /proc to samples. Reads them in libuv's pool, at most one batch at a time, so
// that a read that does not return keeps one thread of the pool and nothing else.
// Thread: loop.
class Sampler {
 public:
  using Done = std::function<void(std::vector<WorkerSample>)>;

  explicit Sampler(Loop& loop) : loop_(loop) {}
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Reads `process` and the wanted facts of each sample that has a pid, and calls `done` with all
  // samples, unless this object has been destroyed. Returns false, and never calls `done`, if a
  // batch is under way.
  bool Read(std::vector<WorkerSample> samples, WantedFacts wanted, Done done);

 private:
  Loop& loop_;
  // Owned by this object alone. The callback of the pool has a weak reference, and so learns that
  // this object was destroyed.
  std::shared_ptr<bool> is_busy_ = std::make_shared<bool>(false);
  // The pool shares them, because its read may outlive this object.
  std::shared_ptr<AwaitedFiles> files_ = std::make_shared<AwaitedFiles>();
};

}  // namespace rankrun::agent

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/health/store_waits.h"
#include "agent/health/worker_sample.h"
#include "base/result.h"

namespace rankrun::agent {

constexpr size_t kMaxHealthBytes = 256 * 1024;

// Samples of all workers of a node.
struct NodeSamples {
  int world_size = 0;  // workers of the job
  std::vector<WorkerSample> workers{};
  std::vector<WaitingClient> clients{};  // of the store, if this node hosts it
};

// Encodes at most kMaxHealthBytes: leaves out groups if there are very many. Pure.
std::string EncodeHealth(const NodeSamples& samples);
// Errors: kProtocol.
Result<NodeSamples> DecodeHealth(std::string_view bytes);

}  // namespace rankrun::agent

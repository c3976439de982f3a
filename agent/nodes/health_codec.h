#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/health/stack_suspect.h"
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

// Limits of a message with digests of stacks. The largest digests of all these ranks fit.
constexpr size_t kMaxDigestRanks = 64;
constexpr size_t kMaxDigestBytes = 128 * 1024;

// Encodes digests, equal ones together, of the first kMaxDigestRanks at most. Pure.
std::string EncodeDigests(const std::vector<RankDigest>& digests);
// Errors: kProtocol.
Result<std::vector<RankDigest>> DecodeDigests(std::string_view bytes);

}  // namespace rankrun::agent

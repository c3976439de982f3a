#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "comm/shm/backend.h"
#include "tests/comm/backend_calls.h"
#include "tests/comm/memory_store.h"
#include "tests/comm/ranks.h"

namespace rankrun::comm::shm {

inline BackendConfig ShmConfig(store::Store& store, int rank, int ranks) {
  BackendConfig config{.global_ranks = std::vector<int>(static_cast<size_t>(ranks)),
                       .group_rank = rank,
                       .store = store,
                       .key_prefix = "group/",
                       .network_interface = "",
                       .host = "",
                       .timeout = std::chrono::seconds(30)};
  std::iota(config.global_ranks.begin(), config.global_ranks.end(), 0);
  return config;
}

// Rank of a test: a backend and functions that call it.
class ShmRank {
 public:
  ShmRank(store::Store& store, int rank, int ranks) : rank_(rank), ranks_(ranks) {
    auto backend = ShmBackend::CreateShm(ShmConfig(store, rank, ranks), nullptr);
    if (!backend) ADD_FAILURE() << backend.error().message;
    if (backend) backend_ = *std::move(backend);
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  ShmBackend& backend() { return *backend_; }
  void Leave() { backend_.reset(); }
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }

  // Returns the next operation of this rank.
  Call Next(Operation operation) {
    operation_ = operation;
    operation_.number = ++number_;
    return Call{.operation = operation_, .timeout = timeout_};
  }
  Call Next(Operation::Kind kind, DType dtype = DType::kUInt8, size_t count = 0,
            int root = Operation::kNoRoot) {
    Operation operation{.kind = kind};
    operation.dtype = dtype;
    operation.count = count;
    operation.root = root;
    return Next(operation);
  }

  Result<void> Barrier() { return comm::Barrier(*backend_, Next(Operation::Kind::kBarrier)); }
  Result<void> Sum(std::vector<float>& data) {
    Reduction sum{.dtype = DType::kFloat32, .op = ReduceOp::kSum};
    return comm::AllReduce(*backend_, reinterpret_cast<std::byte*>(data.data()), data.size(), sum,
                           Next(Operation::Kind::kAllReduce, DType::kFloat32, data.size()));
  }

 private:
  const int rank_;
  const int ranks_;
  std::unique_ptr<ShmBackend> backend_;
  std::chrono::milliseconds timeout_{30'000};
  Operation operation_{.kind = Operation::Kind::kBarrier};
  uint64_t number_ = 0;
};

// Runs each rank in a separate thread.
inline void RunShmRanks(int ranks, const std::function<void(ShmRank&)>& body) {
  auto keys = std::make_shared<MemoryKeys>();
  RunRanks(ranks, [&](int rank) {
    MemoryStore store(keys);
    ShmRank each(store, rank, ranks);
    if (!testing::Test::HasFatalFailure()) body(each);
  });
}

}  // namespace rankrun::comm::shm

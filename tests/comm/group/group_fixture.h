#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/status/status_page.h"
#include "comm/group/group.h"
#include "tests/comm/group/fake_backend.h"
#include "tests/comm/memory_store.h"

namespace rankrun::comm {

// Groups on a fake backend and a store in memory.
struct GroupTest : testing::Test {
  std::unique_ptr<Group> Make(int rank, int world_size, FakeBackend** backend = nullptr) {
    std::vector<int> ranks(static_cast<size_t>(world_size));
    std::iota(ranks.begin(), ranks.end(), 0);
    return MakeOf(ranks, rank, std::chrono::seconds(60), backend);
  }
  std::unique_ptr<Group> MakeOf(const std::vector<int>& ranks, int rank,
                                std::chrono::milliseconds timeout,
                                FakeBackend** backend = nullptr) {
    return MakeOn(std::make_unique<MemoryStore>(keys), ranks, rank, timeout, backend);
  }
  std::unique_ptr<Group> MakeOn(std::unique_ptr<store::Store> store, const std::vector<int>& ranks,
                                int rank, std::chrono::milliseconds timeout,
                                FakeBackend** backend) {
    auto barrier = std::make_unique<StoreBarrier>(*store, "g/barrier", rank, ranks);
    auto fake = std::make_unique<FakeBackend>();
    if (backend != nullptr) *backend = fake.get();
    return std::make_unique<Group>(GroupIdentity{.global_rank = ranks[static_cast<size_t>(rank)],
                                                 .global_ranks = ranks,
                                                 .group_rank = rank,
                                                 .timeout = timeout,
                                                 .key_prefix = "g",
                                                 .deaths = DeathWatch(page)},
                                   std::move(store), std::move(barrier), std::move(fake));
  }

  template <typename T>
  static Error ErrorOf(Result<T> result) {
    EXPECT_FALSE(result);
    return result ? Error{ErrorCode::kCancelled, "no error"} : std::move(result).error();
  }

  StatusPage page = *StatusPage::Create();
  std::shared_ptr<MemoryKeys> keys = std::make_shared<MemoryKeys>();
  std::vector<float> data = std::vector<float>(16);
};

}  // namespace rankrun::comm

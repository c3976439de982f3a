#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/core/backend.h"
#include "comm/tcp/backend.h"
#include "comm/world/plugin.h"
#include "tests/comm/memory_store.h"
#include "tests/paths.h"

namespace rankrun::comm::transport {

// Backends that connect ranks over a network.
constexpr const char* kBackends[] = {"gloo", "tcp"};

// Names a test after its backend.
inline std::string NameOfBackend(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

// Backends of one kind on loopback, each rank in a separate thread.
class BackendGroup {
 public:
  using Rank = std::function<void(Backend& backend, int rank)>;

  BackendGroup(std::string name, int ranks) : name_(std::move(name)), ranks_(ranks) {}

  // May be changed before Run, for all ranks or one.
  std::function<void(BackendConfig& config)> configure = [](BackendConfig&) {};
  std::shared_ptr<MemoryKeys> keys = std::make_shared<MemoryKeys>();

  BackendConfig Config(store::Store& store, int rank) const {
    std::vector<int> members;
    for (int r = 0; r < ranks_; ++r) members.push_back(r);
    BackendConfig config{.global_ranks = std::move(members),
                         .group_rank = rank,
                         .store = store,
                         .key_prefix = name_,
                         .network_interface = "",
                         .host = "127.0.0.1",
                         .timeout = std::chrono::seconds(60)};
    configure(config);
    return config;
  }

  Result<std::unique_ptr<Backend>> Create(const BackendConfig& config) const {
    if (name_ == "tcp") return tcp::CreateBackend(config);
    auto plugin = LoadPlugin(name_, {test::Library()});
    if (!plugin) return plugin.error();
    return (*plugin)(config);
  }

  void Run(const Rank& body) const {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks_; ++r) {
      threads.emplace_back([&, r] {
        MemoryStore store(keys);
        auto backend = Create(Config(store, r));
        if (!backend) {
          ADD_FAILURE() << backend.error().message;
          return;
        }
        body(**backend, r);
      });
    }
  }

  int ranks() const { return ranks_; }

 private:
  const std::string name_;
  const int ranks_;
};

// Signal between two ranks, in tests whose ranks are threads.
class Turn {
 public:
  void Pass() {
    passed_ = true;
    passed_.notify_all();
  }
  void Await() { passed_.wait(false); }

 private:
  std::atomic<bool> passed_ = false;
};

// Call of an operation; the number makes it unique.
struct TestCall {
  Operation operation;
  Call call{operation, std::chrono::seconds(60)};

  explicit TestCall(Operation what, std::chrono::milliseconds timeout = std::chrono::seconds(60))
      : operation(what), call{operation, timeout} {}
};

template <typename T>
std::byte* Bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}
template <typename T>
Block BlockOf(std::vector<T>& values) {
  return {Bytes(values), values.size() * sizeof(T)};
}
template <typename T>
ConstBlock ConstBlockOf(const std::vector<T>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace rankrun::comm::transport

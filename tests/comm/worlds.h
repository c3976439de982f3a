#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

#include "base/clock.h"
#include "base/status/status_page.h"
#include "tests/comm/ranks.h"
#include "tests/paths.h"

namespace rankrun::comm {

// Sets the environment that rankrun gives to the worker of that rank.
inline void SetPlace(int global_rank, int world_size, uint16_t port) {
  setenv("RANK", std::to_string(global_rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(world_size).c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  const char* outside = getenv("RANKRUN_TEST_PLUGIN_DIR");  // of a backend built elsewhere
  setenv("RANKRUN_PLUGIN_DIR", outside ? outside : rankrun::test::Library().c_str(), 1);
}

// Gives this process the status page that an agent makes for a worker.
inline void UsePage(const StatusPage& page) {
  const std::string fd = std::to_string(page.fd());
  const std::string path = "/proc/" + std::to_string(page.header().agent_pid) + "/fd/" + fd;
  setenv("RANKRUN_STATUS_FD", fd.c_str(), 1);
  setenv("RANKRUN_STATUS_PATH", path.c_str(), 1);
}

// Returns "3 of 3" if an all-reduce of 3 ranks adds them all.
inline std::string SumOf(ProcessGroup& group) {
  std::vector<int64_t> one{1};
  group.AllReduce(one);
  return std::to_string(one[0]) + " of " + std::to_string(group.world_size());
}

// Names a test after its backend.
inline std::string NameOfBackend(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

// Returns "DistTimeoutError: <text>".
inline std::string InWords(const DistError& error) {
  auto is = [&](auto* kind) { return dynamic_cast<decltype(kind)>(&error) != nullptr; };
  const char* name = "DistError: ";
  if (is(static_cast<const DistBackendError*>(nullptr))) name = "DistBackendError: ";
  if (is(static_cast<const DistTimeoutError*>(nullptr))) name = "DistTimeoutError: ";
  if (is(static_cast<const DistMismatchError*>(nullptr))) name = "DistMismatchError: ";
  if (is(static_cast<const DistNetworkError*>(nullptr))) name = "DistNetworkError: ";
  if (is(static_cast<const DistStoreError*>(nullptr))) name = "DistStoreError: ";
  return std::string(name) + error.what();
}

// Returns the error of `act` as text. It begins with "SLOW" if `act` took
// longer than `limit`.
inline std::string ErrorOf(const std::function<void()>& act,
                           std::chrono::milliseconds limit = std::chrono::milliseconds(kLoadedMs)) {
  TimePoint began = MonotonicClock().Now();
  std::string text = "no error";
  try {
    act();
  } catch (const DistError& error) {
    text = InWords(error);
  }
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(MonotonicClock().Now() - began);
  return took <= limit ? text : "SLOW, " + std::to_string(took.count()) + " ms: " + text;
}

// Runs `body` in `world_size` processes, with a store server in their
// environment. Returns the text of each, or of its exception.
inline std::vector<std::string> OnRanks(int world_size,
                                        const std::function<std::string(int global_rank)>& body) {
  ServerProcess server;
  std::vector<std::unique_ptr<ChildProcess>> processes;
  for (int r = 0; r < world_size; ++r) {
    processes.push_back(std::make_unique<ChildProcess>([&, r] {
      SetPlace(r, world_size, server.port());
      std::string text;
      std::string error = ErrorOf([&] { text = body(r); }, std::chrono::hours(1));
      return error == "no error" ? text : error;
    }));
  }
  std::vector<std::string> texts;
  for (auto& process : processes) texts.push_back(process->Text());
  return texts;
}

// As above, for a `body` that reads its rank from the environment.
inline std::vector<std::string> OnRanks(int world_size, const std::function<std::string()>& body) {
  return OnRanks(world_size, [&](int) { return body(); });
}

// Lets pairs of ranks count as hosts if the backend is one for several hosts.
inline void SetHostFor(const std::string& backend, int global_rank) {
  if (backend != "hierarchical") return;
  setenv("RANKRUN_HOST_ID", std::to_string(global_rank / 2).c_str(), 1);
}

// As above, for ranks that have joined a world.
inline std::vector<std::string> InWorld(
    int world_size, const std::string& backend,
    const std::function<std::string(ProcessGroup& world)>& body) {
  return OnRanks(world_size, [&](int rank) {
    SetHostFor(backend, rank);
    ProcessGroup& world = Init({.timeout = std::chrono::seconds(60), .backend = backend});
    std::string text = body(world);
    Destroy();
    return text;
  });
}

}  // namespace rankrun::comm

// Calls of RPC as operations: hooks and traces.

#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <rankrun/diagnosis/operation_hooks.h>
#include <rankrun/rpc.h>

#include "base/mutex.h"
#include "base/trace/trace_reader.h"
#include "base/trace/trace_writer.h"
#include "tests/comm/cpp/rpc/backends.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

namespace fs = std::filesystem;
using rpc::Payload;
using rpc::WorkerInfo;
using testing::AllOf;
using testing::HasSubstr;

std::string NameOf(int rank) { return "w" + std::to_string(rank); }

void RegisterAll() {
  rpc::RegisterMethod("echo", [](const WorkerInfo&, const Payload& p) { return p; });
  rpc::RegisterMethod("fail", [](const WorkerInfo&, const Payload&) -> Payload {
    throw std::runtime_error("no disk");
  });
}

// Collects the calls and methods of RPC that end.
struct Seen {
  void Add(const OperationInfo& operation) EXCLUDES(mutex) {
    if (!operation.name.starts_with("Rpc")) return;
    bool is_timed = operation.ended >= operation.started;
    MutexLock lock(mutex);
    texts.push_back(operation.name + " " + operation.key + " " + std::to_string(operation.peer) +
                    (operation.bytes >= 100 ? " large" : "") +
                    (operation.has_succeeded ? "" : " failed") + (is_timed ? "" : " not timed"));
  }
  std::string Sorted() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    std::sort(texts.begin(), texts.end());
    std::string all;
    for (const std::string& each : texts) all += each + "\n";
    return all;
  }

  Mutex mutex;
  std::vector<std::string> texts GUARDED_BY(mutex);
};

class RpcProfilingTest : public RpcBackendsTest {};
RANKRUN_WITH_EACH_RPC_BACKEND(RpcProfilingTest);

TEST_P(RpcProfilingTest, HooksSeeEachCallAndEachMethod) {
  auto texts = OnRanks(2, [](int id) {
    RegisterAll();
    Seen seen;
    std::atomic<int> begun = 0;
    {
      OperationHooks hooks(
          {.on_start =
               [&](const OperationInfo& operation) {
                 begun += operation.name == "RpcCall" ? 1 : 0;
               },
           .on_end = [&](const OperationInfo& operation) { seen.Add(operation); }});
      Start(NameOf(id));
      if (id == 0) {
        rpc::RpcSync(1, "echo", {std::string(100, 'x')});
        rpc::RpcAsync(1, "echo").Wait();
        ErrorOf([] { rpc::RpcSync(1, "fail"); });
        ErrorOf([] { rpc::RpcSync(1, "none"); });
      }
      rpc::Shutdown();  // methods have ended on both
    }
    return seen.Sorted() + std::to_string(begun.load()) + " calls";
  });
  EXPECT_EQ(texts[0],
            "RpcCall echo 1\nRpcCall echo 1 large\nRpcCall fail 1 failed\nRpcCall none 1 failed\n"
            "4 calls");
  EXPECT_EQ(texts[1], "RpcMethod echo 0\nRpcMethod echo 0 large\nRpcMethod fail 0 failed\n0 calls");
}

TEST(RpcTraceTest, TheFileHasCallsAndMethods) {
  std::string folder = testing::TempDir() + "trace_of_rpc-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  OnRanks(2, [&](int id) {
    setenv("RANKRUN_TRACE", folder.c_str(), 1);
    setenv("TORCHELASTIC_RUN_ID", "job", 1);
    RegisterAll();
    rpc::Init(NameOf(id));
    for (int i = 0; i < 3; ++i) rpc::RpcSync(1 - id, "echo", {"x"});
    ErrorOf([&] { rpc::RpcSync(1 - id, "fail"); });
    rpc::Shutdown();
    return std::string();
  });
  for (int rank : {0, 1}) {
    auto trace = ReadTrace(TracePath(folder, {.rank = rank, .attempt = 0, .run_id = "job"}));
    ASSERT_TRUE(trace) << trace.error().message;
    std::string text;
    for (const TracedOperation& each : trace->operations) {
      if (each.kind < trace_kind::kRpcCall) continue;
      text += std::string(NameOfTraced(each.kind)) + " " + each.key + " " +
              std::to_string(each.peer) + (each.has_failed ? " failed" : "") + "; ";
    }
    const std::string other = std::to_string(1 - rank);
    EXPECT_THAT(text, AllOf(HasSubstr("RpcCall echo " + other + "; "),
                            HasSubstr("RpcMethod echo " + other + "; "),
                            HasSubstr("RpcCall fail " + other + " failed; "),
                            HasSubstr("RpcMethod fail " + other + " failed; ")));
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace rankrun::comm

// The list of a dynamic group of RPC, changed by another program.

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include <rankrun/rpc.h>

#include "comm/rpc/member_list.h"
#include "store/clients/tcp_store.h"
#include "tests/comm/worlds.h"

namespace rankrun {
namespace {

std::string TakeOffTheList(const std::string& by) {
  auto port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")));
  auto store =
      store::TcpStore::Connect("127.0.0.1", port, {.connect_timeout = std::chrono::seconds(60)});
  if (!store) return store.error().message;
  comm::rpc::MemberList list(*std::move(store), "rankrun/attempt_0/rpc");
  auto changed = list.Change([&](const comm::rpc::Members& now) {
    return Result(comm::rpc::Without(now, now.list.front(), by));
  });
  return changed ? "" : changed.error().message;
}

// Another worker cannot reach it, for instance.
TEST(RpcDynamicListTest, AWorkerThatIsTakenOffSaysByWhom) {
  auto texts = comm::OnRanks(1, [](int) {
    rpc::RegisterMethod("echo", [](const rpc::WorkerInfo&, const rpc::Payload& p) { return p; });
    rpc::Init("w0", {.is_dynamic = true});
    std::string text = TakeOffTheList("w7");
    TimePoint deadline = MonotonicClock().Now() + std::chrono::milliseconds(comm::kLoadedMs);
    while (!text.starts_with("Dist") && MonotonicClock().Now() < deadline) {
      text = comm::ErrorOf([] { rpc::RpcSync("w0", "echo"); });
    }
    rpc::Shutdown();
    return text;
  });
  EXPECT_EQ(texts[0],
            "DistNetworkError: call of echo on worker w0: worker w7 has lost this one, and has "
            "taken it off the list of workers");
}

}  // namespace
}  // namespace rankrun

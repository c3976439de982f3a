// The backend "PROCESS_GROUP" of RPC.

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <rankrun/rpc.h>
#include <rankrun/rpc/backend.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using rpc::Payload;
using rpc::WorkerInfo;
using testing::Each;
using testing::HasSubstr;

constexpr char kName[] = "PROCESS_GROUP";

std::string NameOf(int rank) { return "w" + std::to_string(rank); }

Payload Echo(const WorkerInfo&, const Payload& arguments) { return arguments; }

rpc::Attachment Large(size_t bytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(bytes);
  for (size_t i = 0; i < bytes; i += 4096) (*owner)[i] = static_cast<std::byte>(i / 4096);
  return {owner, *owner};
}

class RpcProcessGroupTest : public testing::TestWithParam<const char*> {};

// Both send more than any buffer takes at once.
TEST_P(RpcProcessGroupTest, LargeDataTravelsBothWaysByEachBackend) {
  auto texts = OnRanks(3, [](int rank) {
    setenv("RANKRUN_BACKEND", GetParam(), 1);
    SetHostFor(GetParam(), rank);
    rpc::RegisterMethod("echo", Echo);
    rpc::Init(NameOf(rank), {.backend = kName});
    rpc::Attachment sent = Large(20'000'001);
    std::vector<Future<Payload>> calls;
    for (int callee = 0; callee < 3; ++callee) {
      calls.push_back(rpc::RpcAsync(callee, "echo", {"x", {sent, sent}}));
    }
    bool is_right = true;
    for (const auto& call : calls) {
      const Payload& result = call.Wait();
      is_right = is_right && result.bytes == "x" && result.attachments.size() == 2;
      for (const rpc::Attachment& each : result.attachments) {
        is_right = is_right && std::equal(each.bytes.begin(), each.bytes.end(), sent.bytes.begin(),
                                          sent.bytes.end());
      }
    }
    rpc::Shutdown();
    return std::string(is_right ? "right" : "wrong");
  });
  EXPECT_THAT(texts, Each("right"));
}

TEST_P(RpcProcessGroupTest, ManyCallsAreInFlight) {
  auto texts = OnRanks(2, [](int rank) {
    setenv("RANKRUN_BACKEND", GetParam(), 1);
    SetHostFor(GetParam(), rank);
    rpc::RegisterMethod("echo", Echo);
    rpc::Init(NameOf(rank), {.backend = kName});
    std::vector<Future<Payload>> calls;
    for (int i = 0; i < 2000; ++i) {
      calls.push_back(rpc::RpcAsync(1 - rank, "echo", {std::to_string(i)}));
    }
    int wrong = 0;
    for (size_t i = 0; i < calls.size(); ++i) wrong += calls[i].Wait().bytes != std::to_string(i);
    rpc::Shutdown();
    return std::to_string(wrong);
  });
  EXPECT_THAT(texts, Each("0"));
}

INSTANTIATE_TEST_SUITE_P(Backends, RpcProcessGroupTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST(RpcProcessGroupOptionsTest, WrongOptionsAreRefused) {
  rpc::BackendType backend = rpc::FindBackend(kName);
  auto construct = [&](const rpc::OptionMap& options) {
    return ErrorOf([&] {
      rpc::ConstructRpcBackendOptions(backend, std::chrono::seconds(60), "env://", options);
    });
  };
  EXPECT_THAT(construct({{"num_worker_threads", 7}}),
              HasSubstr("PROCESS_GROUP has no option num_worker_threads: want "
                        "num_send_recv_threads"));
  EXPECT_THAT(construct({{"num_send_recv_threads", std::string("7")}}),
              HasSubstr("num_send_recv_threads of PROCESS_GROUP has another type: want int"));
  auto made = rpc::ConstructRpcBackendOptions(backend, std::chrono::seconds(5), "tcp://h:1",
                                              {{"num_send_recv_threads", 7}});
  auto& options = dynamic_cast<rpc::ProcessGroupRpcBackendOptions&>(*made);
  EXPECT_EQ(options.num_send_recv_threads, 7);
  EXPECT_EQ(options.rpc_timeout, std::chrono::seconds(5));
  EXPECT_EQ(options.init_method, "tcp://h:1");
  EXPECT_EQ(rpc::ProcessGroupRpcBackendOptions().num_send_recv_threads, 4);

  auto init = [](std::shared_ptr<rpc::RpcBackendOptions> of, bool is_dynamic = false) {
    return ErrorOf([&] {
      rpc::Init("a", {.backend = kName, .backend_options = of, .is_dynamic = is_dynamic});
    });
  };
  EXPECT_THAT(init(std::make_shared<rpc::TensorPipeRpcBackendOptions>()),
              HasSubstr("the options are not those of PROCESS_GROUP: want "
                        "ProcessGroupRpcBackendOptions"));
  options.num_send_recv_threads = 0;
  EXPECT_THAT(init(made), HasSubstr("num_send_recv_threads is 0: want at least 1"));
  EXPECT_THAT(init(nullptr, true), HasSubstr("PROCESS_GROUP has no dynamic groups"));
}

TEST(RpcProcessGroupOptionsTest, TheRankMustBeOneOfTheGroup) {
  auto texts = OnRanks(1, [](int) {
    return ErrorOf([] { rpc::Init("a", {.backend = kName, .rank = 5, .world_size = 2}); });
  });
  EXPECT_THAT(texts[0], HasSubstr("rank is 5: want less than world_size, which is 2"));
}

TEST(RpcProcessGroupOptionsTest, AttachmentsOnGpusAreRefused) {
  auto texts = OnRanks(2, [](int rank) {
    rpc::RegisterMethod("echo", Echo);
    rpc::Init(NameOf(rank), {.backend = kName});
    rpc::Attachment gpu = Large(1);
    gpu.device = {.type = DeviceType::kCuda, .index = 0};
    std::string text = ErrorOf([&] { rpc::RpcSync(1 - rank, "echo", {"", {gpu}}); });
    rpc::Shutdown();
    return text;
  });
  EXPECT_THAT(texts[0], HasSubstr("an attachment is on cuda:0, from where no device map leads"));
}

}  // namespace
}  // namespace rankrun::comm

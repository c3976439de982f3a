#include <gmock/gmock.h>

#include <rankrun/rpc/backend.h>
#include <rankrun/store.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using rpc::DevicePairs;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr Device kCpu{};
constexpr Device Gpu(int index) { return {.type = DeviceType::kCuda, .index = index}; }

TEST(RpcDeviceOptionsTest, MapsOfACalleeAreMerged) {
  rpc::TensorPipeRpcBackendOptions options;
  options.SetDeviceMap("b", {{Gpu(0), Gpu(1)}});
  options.SetDeviceMap("b", {{Gpu(0), Gpu(1)}, {kCpu, Gpu(0)}});
  options.SetDeviceMap("c", {});
  EXPECT_THAT(options.device_maps,
              ElementsAre(Pair("b", ElementsAre(Pair(Gpu(0), Gpu(1)), Pair(kCpu, Gpu(0)))),
                          Pair("c", DevicePairs())));
  EXPECT_EQ(ErrorOf([&] {
              options.SetDeviceMap("b", {{Gpu(2), Gpu(1)}});
            }),
            "DistError: SetDeviceMap(\"b\"): a target twice: cuda:0 to cuda:1, cpu to cuda:0, "
            "cuda:2 to cuda:1");
  EXPECT_THAT(ErrorOf([&] {
                options.SetDeviceMap("b", {{Gpu(0), Gpu(3)}});
              }),
              HasSubstr("a source twice"));
  EXPECT_EQ(options.device_maps["b"].size(), 2U) << "an error changes nothing";
  options.SetDevices({Gpu(1), kCpu});
  EXPECT_THAT(options.devices, ElementsAre(Gpu(1), kCpu));
}

TEST(RpcDeviceOptionsTest, TheRegistryTakesMapsAndDevices) {
  using Maps = std::map<std::string, DevicePairs>;
  auto made = rpc::ConstructRpcBackendOptions(
      rpc::FindBackend("TENSORPIPE"), std::chrono::seconds(1), "env://",
      {{"device_maps", Maps{{"b", {{Gpu(0), Gpu(1)}}}}}, {"devices", std::vector<Device>{Gpu(0)}}});
  auto& options = dynamic_cast<rpc::TensorPipeRpcBackendOptions&>(*made);
  EXPECT_THAT(options.device_maps, ElementsAre(Pair("b", ElementsAre(Pair(Gpu(0), Gpu(1))))));
  EXPECT_THAT(options.devices, ElementsAre(Gpu(0)));
}

// This machine's process has no plug-in for GPUs, or no GPU.
TEST(RpcDeviceOptionsTest, AMapForAnUnknownWorkerIsAnErrorOfAll) {
  auto texts = OnRanks(2, [](int rank) {
    auto options = std::make_shared<rpc::TensorPipeRpcBackendOptions>();
    if (rank == 1) options->SetDeviceMap("nobody", {{kCpu, kCpu}});
    return ErrorOf([&] { rpc::Init("w" + std::to_string(rank), {.backend_options = options}); });
  });
  EXPECT_THAT(texts, testing::Each("DistError: worker w1 has a device map for nobody: want one "
                                   "of w0, w1"));
}

// Agent whose calls name a GPU that the callee does not use.
class Liar final : public rpc::RpcAgent {
 public:
  explicit Liar(std::unique_ptr<rpc::RpcAgent> agent) : agent_(std::move(agent)) {}
  rpc::WorkerInfo GetWorkerInfo() const override { return agent_->GetWorkerInfo(); }
  std::vector<rpc::WorkerInfo> GetWorkerInfos() const override { return agent_->GetWorkerInfos(); }
  rpc::Payload CallAndWait(const rpc::WorkerInfo& callee, const std::string& method,
                           rpc::Payload arguments, milliseconds limit) override {
    return agent_->CallAndWait(callee, method, std::move(arguments), limit);
  }
  Future<rpc::Payload> Call(const rpc::WorkerInfo& callee, const std::string& method,
                            rpc::Payload arguments, milliseconds limit) override {
    return agent_->Call(callee, method, std::move(arguments), limit);
  }
  rpc::DevicePairs GetDeviceMap(const rpc::WorkerInfo&) const override { return {{kCpu, Gpu(0)}}; }
  void SetLossHandler(std::function<void(int)> lost) override { agent_->SetLossHandler(lost); }
  void Join(milliseconds limit) override { agent_->Join(limit); }
  void Shutdown() override { agent_->Shutdown(); }
  std::map<std::string, std::string> GetMetrics() const override { return {}; }

 private:
  const std::unique_ptr<rpc::RpcAgent> agent_;
};

TEST(RpcDeviceOptionsTest, NothingArrivesOnAGpuThatIsNotInUse) {
  auto texts = OnRanks(2, [](int rank) {
    rpc::RegisterMethod("take",
                        [](const rpc::WorkerInfo&, const rpc::Payload& all) { return all; });
    rpc::RegisterBackend(
        "liar", {.construct_options =
                     [](milliseconds, const std::string&, const rpc::OptionMap&) {
                       return std::make_shared<rpc::TensorPipeRpcBackendOptions>();
                     },
                 .init =
                     [](auto store, auto name, auto id, auto size, auto options) {
                       return std::make_unique<Liar>(rpc::InitBackend(
                           rpc::FindBackend("TENSORPIPE"), store, name, id, size, options));
                     }});
    const int port = std::stoi(getenv("MASTER_PORT"));
    auto store = std::make_shared<TcpStore>(TcpStoreOptions{.port = static_cast<uint16_t>(port)});
    rpc::Init("w" + std::to_string(rank), {.backend = rank == 0 ? "TENSORPIPE" : "liar",
                                           .rank = rank,
                                           .world_size = 2,
                                           .store = store});
    std::string text = "no call";
    if (rank == 1) {
      auto byte = std::make_shared<std::byte>();
      text = ErrorOf([&] { rpc::RpcSync("w0", "take", {"x", {{byte, {byte.get(), 1}}}}); });
    }
    rpc::Shutdown();
    return text;
  });
  EXPECT_THAT(texts[1],
              testing::EndsWith("a payload names cuda:0, which this worker does not use"));
}

}  // namespace
}  // namespace rankrun::comm

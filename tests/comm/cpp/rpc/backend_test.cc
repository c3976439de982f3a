#include <gmock/gmock.h>

#include <string>
#include <vector>

#include <rankrun/rpc/backend.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using rpc::BackendType;
using rpc::Payload;
using rpc::WorkerInfo;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

struct OwnOptions : rpc::RpcBackendOptions {
  int colour = 0;
};

// Agent of one worker, which answers all calls itself.
class Alone : public rpc::RpcAgent {
 public:
  explicit Alone(std::string name) : name_(std::move(name)) {}
  WorkerInfo GetWorkerInfo() const override { return {name_, 0}; }
  std::vector<WorkerInfo> GetWorkerInfos() const override { return {GetWorkerInfo()}; }
  Payload CallAndWait(const WorkerInfo& callee, const std::string& method, Payload arguments,
                      milliseconds limit) override {
    calls.push_back(callee.name + " " + method + " " + std::to_string(limit.count()));
    return arguments;
  }
  Future<Payload> Call(const WorkerInfo& callee, const std::string& method, Payload arguments,
                       milliseconds limit) override {
    Promise<Payload> promise;
    promise.SetValue(CallAndWait(callee, method, std::move(arguments), limit));
    return promise.future();
  }
  void Join(milliseconds) override { calls.push_back("join"); }
  void Shutdown() override { calls.push_back("shutdown"); }
  void SetLossHandler(std::function<void(int)>) override {}
  std::map<std::string, std::string> GetMetrics() const override { return {}; }

  static inline std::vector<std::string> calls;

 private:
  const std::string name_;
};

rpc::BackendHandlers Handlers(std::string* seen) {
  return {
      .construct_options =
          [](milliseconds timeout, const std::string& method, const rpc::OptionMap& given) {
            auto options = std::make_shared<OwnOptions>();
            options->rpc_timeout = timeout;
            options->init_method = method;
            if (given.contains("colour")) {
              options->colour = std::any_cast<int>(given.at("colour"));
            }
            return options;
          },
      .init =
          [seen](std::shared_ptr<Store> store, const std::string& name, int rank,
                 std::optional<int> world_size, std::shared_ptr<rpc::RpcBackendOptions> options) {
            *seen = name + " " + std::to_string(rank) + " " +
                    (world_size ? std::to_string(*world_size) : "none") +
                    (store == nullptr ? " no store " : " store ") +
                    std::to_string(dynamic_cast<OwnOptions&>(*options).colour);
            return std::make_unique<Alone>(name);
          }};
}

TEST(RpcBackendTest, AProgramRegistersItsOwn) {
  std::string seen;
  EXPECT_TRUE(rpc::BackendRegistered("TENSORPIPE"));
  EXPECT_FALSE(rpc::BackendRegistered("other"));
  BackendType before = rpc::FindBackend("TENSORPIPE");
  BackendType own = rpc::RegisterBackend("own", Handlers(&seen));
  EXPECT_TRUE(rpc::BackendRegistered("own"));
  EXPECT_EQ(own.Text(), "BackendType.own");
  EXPECT_EQ(rpc::FindBackend("own"), own);
  EXPECT_EQ(rpc::FindBackend("TENSORPIPE"), before) << "a handle outlives other registrations";
  EXPECT_THAT(ErrorOf([&] { rpc::RegisterBackend("own", Handlers(&seen)); }),
              HasSubstr("RPC backend own is registered already"));
  EXPECT_THAT(ErrorOf([&] { rpc::RegisterBackend("", Handlers(&seen)); }), HasSubstr("is empty"));
  EXPECT_THAT(ErrorOf([&] { rpc::RegisterBackend("half", {}); }), HasSubstr("lacks a function"));
  EXPECT_THAT(ErrorOf([&] { rpc::FindBackend("none"); }),
              HasSubstr("there is no RPC backend none: want PROCESS_GROUP, TENSORPIPE, own"));

  auto options = rpc::ConstructRpcBackendOptions(own, seconds(5), "tcp://h:1", {{"colour", 7}});
  EXPECT_EQ(options->rpc_timeout, seconds(5));
  EXPECT_EQ(options->init_method, "tcp://h:1");
  auto agent = rpc::InitBackend(own, nullptr, "a", 0, std::nullopt, options);
  EXPECT_EQ(seen, "a 0 none no store 7");
}

TEST(RpcBackendTest, InitUsesTheBackendThatIsAskedFor) {
  std::string seen;
  rpc::RegisterBackend("alone", Handlers(&seen));
  Alone::calls.clear();
  rpc::Init("a", {.backend = "alone", .rank = 0, .world_size = 1});
  EXPECT_EQ(seen, "a 0 1 no store 0");
  rpc::RpcSync("a", "add", {"x"});
  rpc::SetRpcTimeout(seconds(3));
  EXPECT_EQ(rpc::GetRpcTimeout(), seconds(3));
  EXPECT_EQ(rpc::RpcAsync(0, "sub", {"y"}).Wait().bytes, "y");
  rpc::RpcSync(0, "mul", {}, milliseconds(5));
  rpc::Shutdown();
  EXPECT_THAT(Alone::calls,
              ElementsAre("a add 60000", "a sub 3000", "a mul 5", "join", "shutdown"));
}

TEST(RpcBackendTest, TensorPipeRefusesWrongOptions) {
  BackendType backend = rpc::FindBackend("TENSORPIPE");
  EXPECT_THAT(
      ErrorOf([&] {
        rpc::ConstructRpcBackendOptions(backend, seconds(60), "env://", {{"threads", 7}});
      }),
      HasSubstr(
          "TENSORPIPE has no option threads: want num_worker_threads, device_maps or devices"));
  EXPECT_THAT(ErrorOf([&] {
                rpc::ConstructRpcBackendOptions(backend, seconds(60), "env://",
                                                {{"num_worker_threads", std::string("7")}});
              }),
              HasSubstr("has another type: want int"));
  EXPECT_THAT(ErrorOf([&] {
                rpc::InitBackend(backend, nullptr, "a", 0, 1, std::make_shared<OwnOptions>());
              }),
              HasSubstr("the options are not those of TENSORPIPE"));
  EXPECT_THAT(ErrorOf([] {
                auto options = std::make_shared<rpc::TensorPipeRpcBackendOptions>();
                options->num_worker_threads = 0;
                rpc::Init("a", {.backend_options = options});
              }),
              HasSubstr("num_worker_threads is 0: want at least 1"));
}

}  // namespace
}  // namespace rankrun::comm

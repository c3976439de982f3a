#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

#include <rankrun/rpc/backend.h>
#include <rankrun/store.h>

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
  auto agent = rpc::InitBackend(own, std::make_shared<HashStore>(), "a", 0, std::nullopt, options);
  EXPECT_EQ(seen, "a 0 none store 7");
  for (const BackendType& each : {own, before}) {
    EXPECT_THAT(ErrorOf([&] { rpc::InitBackend(each, nullptr, "a", 0, 1, options); }),
                HasSubstr("the store is null"));
  }
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

// Carries out a call of this worker to itself, as an agent does.
Payload ResultHere(const std::string& method, Payload arguments) {
  const WorkerInfo self{"a", 0};
  return rpc::ResultOf(self, method, rpc::RunMethod(self, method, std::move(arguments)));
}

// As Alone, but runs the methods.
struct Runs : Alone {
  using Alone::Alone;
  Payload CallAndWait(const WorkerInfo&, const std::string& method, Payload arguments,
                      milliseconds) override {
    return ResultHere(method, std::move(arguments));
  }
};

// Returns the results of calls by such an agent, one per line.
std::string ResultsOfOwnAgent() {
  rpc::BackendHandlers handlers = Handlers(nullptr);
  handlers.init = [](auto, const std::string& name, int, auto, auto) {
    return std::make_unique<Runs>(name);
  };
  rpc::RegisterBackend("runs", handlers);
  rpc::RegisterMethod("double", [](const WorkerInfo& caller, const Payload& given) {
    return Payload{caller.name + given.bytes + given.bytes, given.attachments, given.references};
  });
  rpc::RegisterMethod("throw", [](const WorkerInfo&, const Payload&) -> Payload { throw 7; });
  rpc::Init("a", {.backend = "runs", .rank = 0, .world_size = 1});
  const std::byte bytes[3] = {};
  Payload given{"x", {{nullptr, bytes}}, {rpc::MakeReference({std::string("kept")})}};
  Payload result = rpc::RpcSync("a", "double", given);
  std::string results = result.bytes + " " + std::to_string(result.attachments.at(0).bytes.size()) +
                        " " + std::any_cast<std::string>(result.references.at(0).LocalValue()) +
                        "\n" + rpc::RpcAsync("a", "double").Wait().bytes + "\n" +
                        rpc::Remote("a", "double", {"y"}).ToHere().bytes + "\n" +
                        ErrorOf([] { rpc::RpcSync("a", "throw"); }) + "\n" +
                        ErrorOf([] { rpc::RpcSync("a", "none"); }) + "\n";
  rpc::Shutdown();
  return results;
}

TEST(RpcBackendTest, AnAgentRunsMethodsAndReadsReplies) {
  EXPECT_EQ(ChildProcess(ResultsOfOwnAgent).Text(),
            "axx 3 kept\n"
            "a\n"
            "ayy\n"
            "DistError: call of throw on worker a: an exception that is no std::exception\n"
            "DistError: call of none on worker a: there is no method none: want double, throw\n");
  for (const char* bytes : {"", "no reply"}) {
    EXPECT_THAT(ErrorOf([&] {
                  rpc::ResultOf({"b", 1}, "double", {bytes});
                }),
                HasSubstr("the reply of worker b to double is not one of rpc::RunMethod"));
  }
}

// Init fails on one worker after another one has called its method.
TEST(RpcBackendTest, AMethodThatWaitsForInitDoesNotKeepItFromFailing) {
  auto texts = OnRanks(2, [](int rank) {
    const int port = std::stoi(getenv("MASTER_PORT"));
    auto store = std::make_shared<TcpStore>(TcpStoreOptions{.port = static_cast<uint16_t>(port)});
    rpc::RegisterMethod("echo", [](const WorkerInfo&, const Payload& given) { return given; });
    rpc::BackendHandlers handlers = Handlers(nullptr);
    handlers.init = [&](auto, auto name, auto id, auto size,
                        auto) -> std::unique_ptr<rpc::RpcAgent> {
      BackendType real = rpc::FindBackend("TENSORPIPE");
      auto agent =
          rpc::InitBackend(real, store, name, id, size, rpc::ConstructRpcBackendOptions(real));
      while (agent->GetMetrics()["agent.server_active_calls"] != "1") std::this_thread::yield();
      throw DistError("no luck");
    };
    rpc::RegisterBackend("fails", handlers);
    const rpc::Options options{.backend = rank == 1 ? "fails" : "TENSORPIPE",
                               .rank = rank,
                               .world_size = 2,
                               .store = store};
    const std::string name = "w" + std::to_string(rank);
    if (rank == 1) return ErrorOf([&] { rpc::Init(name, options); });
    rpc::Init(name, options);
    std::string text = ErrorOf([] { rpc::RpcSync("w1", "echo", {"x"}); });
    rpc::Shutdown(false);
    return text;
  });
  EXPECT_THAT(texts[0], HasSubstr("call of echo on worker w1: "));
  EXPECT_EQ(texts[1], "DistError: no luck");
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
                rpc::InitBackend(backend, std::make_shared<HashStore>(), "a", 0, 1,
                                 std::make_shared<OwnOptions>());
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

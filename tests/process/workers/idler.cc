// idler HOW SECONDS: two ranks that are healthy, although neither makes progress for that time.

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/join.h>
#include <rankrun/rpc.h>
#include <rankrun/store.h>

namespace {

using rankrun::GlobalRank;
using rankrun::ProcessGroup;
namespace rpc = rankrun::rpc;

std::chrono::milliseconds idle{};

void Sleep() { std::this_thread::sleep_for(idle); }

// Waits for a lock, as far as the kernel knows.
void Rest() {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait_for(lock, idle, [] { return false; });
}

void Compute() {
  const auto end = std::chrono::steady_clock::now() + idle;
  while (std::chrono::steady_clock::now() < end) {
  }
}

int Rank() { return std::atoi(std::getenv("RANK")); }

void InitRpc(const rpc::Options& options) { rpc::Init("worker" + std::to_string(Rank()), options); }

std::function<void()> InRpc(const rpc::Options& options, const std::function<void()>& wait) {
  return [options, wait] {
    InitRpc(options);
    wait();
    rpc::Shutdown();
  };
}

// Rank 1 only serves: it is at its end at once.
void Serve() {
  rpc::RegisterMethod("echo", [](const rpc::WorkerInfo&, const rpc::Payload& arguments) {
    return rpc::Payload{arguments.bytes};
  });
  InitRpc({});
  if (Rank() == 0) {
    Sleep();
    if (rpc::RpcSync("worker1", "echo", {"text"}).bytes != "text") std::_Exit(97);
  }
  rpc::Shutdown();
}

std::function<void()> InWorld(const std::function<void(ProcessGroup&)>& body) {
  return [body] {
    body(rankrun::Init());
    rankrun::Destroy();
  };
}

// Rank 0 has work under way, and computes meanwhile.
void WithWork(ProcessGroup& world) {
  std::vector<int> value{1};
  if (world.global_rank() == 1) {
    Sleep();
    world.AllReduce(value);
  } else {
    const rankrun::Work work = world.AllReduce(value, rankrun::ReduceOp::kSum, rankrun::kAsync);
    Sleep();
    work.Wait();
  }
  if (value[0] != 2) std::_Exit(97);
}

void WithMessage(ProcessGroup& world) {
  std::vector<int> value{7};
  if (world.global_rank() == 1) {
    Sleep();
    world.Send(value, GlobalRank{0});
  } else {
    const rankrun::Work work = world.IRecv(value, GlobalRank{1});
    Sleep();
    work.Wait();
  }
}

class Model final : public rankrun::Joinable {
 public:
  explicit Model(ProcessGroup& group) : group_(group) {}
  std::unique_ptr<rankrun::JoinHook> MakeJoinHook(const rankrun::JoinArguments&) override {
    return std::make_unique<Hook>();
  }
  ProcessGroup& join_process_group() const override { return group_; }

 private:
  struct Hook final : rankrun::JoinHook {
    void MainHook() override {}
  };
  ProcessGroup& group_;
};

void InJoin(ProcessGroup& world) {
  Model model(world);
  rankrun::Join join({&model});
  Sleep();
  join.Finish();
}

// A thread of the program waits for a key, which the main thread sets later.
std::function<void()> WithWatcher(const std::function<void()>& wait) {
  return [wait] {
    const std::string key = "news_" + std::to_string(Rank());
    const rankrun::TcpStoreOptions options{
        .host = std::getenv("MASTER_ADDR"),
        .port = static_cast<uint16_t>(std::atoi(std::getenv("MASTER_PORT")))};
    rankrun::TcpStore watched(options);
    rankrun::TcpStore own(options);
    std::thread watcher([&] { watched.Wait({key}); });
    wait();
    own.Set(key, "");
    watcher.join();
  };
}

const std::map<std::string, std::function<void()>> kWays = {
    {"rpc", InRpc({}, Sleep)},
    {"rpc_of_group", InRpc({.backend = "PROCESS_GROUP"}, Sleep)},
    {"dynamic_rpc", InRpc({.is_dynamic = true}, Sleep)},
    {"dynamic_rpc_rest", InRpc({.is_dynamic = true}, Rest)},
    {"rpc_server", Serve},
    {"sleep", InWorld([](ProcessGroup&) { Sleep(); })},
    {"compute", InWorld([](ProcessGroup&) { Compute(); })},
    {"work", InWorld(WithWork)},
    {"message", InWorld(WithMessage)},
    {"join", InWorld(InJoin)},
    {"watcher", WithWatcher(Sleep)},
    {"watcher_compute", WithWatcher(Compute)},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 99;
  idle = std::chrono::milliseconds(static_cast<int>(1'000 * std::atof(argv[2])));
  kWays.at(argv[1])();
}

// An RPC agent of a program's own: workers of one host that call each other over UNIX sockets.
// The library gives it calls as opaque bytes; rpc::RunMethod carries them out on the callee, and
// rpc::ResultOf reads the replies.
//
//   rankrun -n 3 --no-python own_agent

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/context.h>
#include <rankrun/objects.h>
#include <rankrun/rpc.h>
#include <rankrun/rpc/backend.h>
#include <rankrun/rpc/values.h>

#include "unix_line.h"
#include "unix_listener.h"

namespace rpc = rankrun::rpc;
using own_agent::ConnectTo;
using own_agent::Line;
using own_agent::Listener;
using own_agent::Message;
using rpc::Payload;
using rpc::WorkerInfo;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

rankrun::Object ObjectOf(const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

class UnixAgent final : public rpc::RpcAgent {
 public:
  // Connects each worker with each, by one line for the calls of either.
  UnixAgent(const std::string& name, const rankrun::InitOptions& place)
      : context_("unix_rpc", place) {
    rankrun::ProcessGroup& world = context_.World();
    for (const rankrun::Object& each : AllGatherObject(world, ObjectOf(name))) {
      const auto* text = reinterpret_cast<const char*>(each.data());
      workers_.push_back({{text, each.size()}, static_cast<int>(workers_.size())});
    }
    self_ = workers_.at(static_cast<size_t>(world.group_rank()));
    const Listener listener;
    const std::vector<rankrun::Object> addresses = AllGatherObject(world, listener.address());
    for (const WorkerInfo& each : workers_) {
      if (each.id == self_.id) continue;
      auto line = std::make_unique<Line>(ConnectTo(addresses[static_cast<size_t>(each.id)]));
      line->Send({.method = std::to_string(self_.id)});
      calls_.emplace(each.id, std::move(line));
    }
    world.Barrier();  // all have connected, so nothing below waits
    for (size_t i = 1; i < workers_.size(); ++i) {
      auto line = std::make_unique<Line>(listener.Accept());
      Message first;
      if (!line->Receive(first)) throw std::runtime_error("a worker has ended");
      requests_.emplace(std::stoi(first.method), std::move(line));
    }
    for (auto& each : calls_) {
      threads_.emplace_back(&UnixAgent::ReadReplies, this, each.first, std::ref(*each.second));
    }
    for (auto& each : requests_) {
      threads_.emplace_back(&UnixAgent::ReadCalls, this, each.first, std::ref(*each.second));
    }
    threads_.emplace_back(&UnixAgent::EndLateCalls, this);
  }

  ~UnixAgent() override {
    UnixAgent::Shutdown();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_ == 0; });
  }

  WorkerInfo GetWorkerInfo() const override { return self_; }
  std::vector<WorkerInfo> GetWorkerInfos() const override { return workers_; }

  Payload CallAndWait(const WorkerInfo& callee, const std::string& method, Payload arguments,
                      milliseconds limit) override {
    return Call(callee, method, std::move(arguments), limit).Wait();
  }

  rankrun::Future<Payload> Call(const WorkerInfo& callee, const std::string& method,
                                Payload arguments, milliseconds limit) override {
    OpenCall call{.callee = callee, .method = method};
    if (limit > milliseconds(0)) call.deadline = Clock::now() + limit;
    auto future = call.promise.future();
    Message message{.method = method, .payload = std::move(arguments)};
    {
      std::lock_guard lock(mutex_);
      message.call = ++begun_;
      open_.emplace(message.call, std::move(call));
      if (has_ended_) EndAllCalls();
      if (lost_.contains(callee.id)) EndCallsTo(callee.id);
    }
    changed_.notify_all();
    if (callee.id == self_.id) {
      Start([this, message = std::move(message)]() mutable {
        message.payload = rpc::RunMethod(self_, message.method, std::move(message.payload));
        Finish(std::move(message));
      });
    } else {
      calls_.at(callee.id)->Send(message);  // a line that has ended ends the call, too
    }
    return future;
  }

  void SetLossHandler(std::function<void(int worker)> lost) override {
    std::lock_guard lock(mutex_);
    on_loss_ = std::move(lost);
  }
  bool IsLost(int worker) const override {
    std::lock_guard lock(mutex_);
    return lost_.contains(worker);
  }

  // Over once two looks in a row find no call under way, and none that began in between.
  void Join(milliseconds limit) override {
    rankrun::Timeout left;
    if (limit > milliseconds(0)) left = limit;
    for (int64_t begun_before = -1;;) {
      std::vector<int64_t> sums;
      {
        std::lock_guard lock(mutex_);
        sums = {static_cast<int64_t>(open_.size()) + tasks_, static_cast<int64_t>(begun_)};
      }
      context_.World().AllReduce(sums, rankrun::ReduceOp::kSum, left);
      if (sums[0] == 0 && sums[1] == begun_before) return;
      begun_before = sums[0] == 0 ? sums[1] : -1;
      if (sums[0] != 0) std::this_thread::sleep_for(milliseconds(1));
    }
  }

  void Shutdown() override {
    {
      std::lock_guard lock(mutex_);
      if (std::exchange(has_ended_, true)) return;
      EndAllCalls();
    }
    changed_.notify_all();
    for (auto& [id, line] : calls_) line->End();
    for (auto& [id, line] : requests_) line->End();
    for (std::thread& each : threads_) each.join();
  }

  std::map<std::string, std::string> GetMetrics() const override {
    std::lock_guard lock(mutex_);
    return {{"agent.client_active_calls", std::to_string(open_.size())}};
  }

 private:
  struct OpenCall {
    WorkerInfo callee;
    std::string method;
    Clock::time_point deadline = Clock::time_point::max();
    rankrun::Promise<Payload> promise = {};
  };

  // Runs a task that may wait in a thread of its own. Called with or without the mutex.
  void Start(std::function<void()> task) {
    tasks_ += 1;
    std::thread([this, task = std::move(task)] {
      task();
      std::lock_guard lock(mutex_);
      tasks_ -= 1;
      changed_.notify_all();
    }).detach();
  }

  void ReadCalls(int caller, Line& line) {
    for (Message request; line.Receive(request); request = {}) {
      Start([this, caller, &line, request = std::move(request)]() mutable {
        const WorkerInfo& from = workers_[static_cast<size_t>(caller)];
        Payload reply = rpc::RunMethod(from, request.method, std::move(request.payload));
        line.Send({.call = request.call, .payload = std::move(reply)});
      });
    }
    Lose(caller);
  }

  void ReadReplies(int callee, Line& line) {
    for (Message reply; line.Receive(reply); reply = {}) Finish(std::move(reply));
    Lose(callee);
  }

  void Finish(Message reply) {
    std::lock_guard lock(mutex_);
    auto found = open_.find(reply.call);
    if (found == open_.end()) return;  // its time-out has passed
    Start([call = std::move(found->second), reply = std::move(reply.payload)]() mutable {
      try {
        call.promise.SetValue(rpc::ResultOf(call.callee, call.method, std::move(reply)));
      } catch (const rankrun::DistError&) {
        call.promise.SetException(std::current_exception());
      }
    });
    open_.erase(found);
  }

  void Lose(int worker) {
    std::function<void(int)> on_loss;
    {
      std::lock_guard lock(mutex_);
      if (has_ended_ || !lost_.insert(worker).second) return;
      EndCallsTo(worker);
      on_loss = on_loss_;
    }
    if (on_loss) on_loss(worker);
  }

  // Called with the mutex, as the next two.
  void EndAllCalls() {
    EndCalls([](const OpenCall&) { return true; }, "RPC of this worker has ended");
  }
  void EndCallsTo(int worker) {
    EndCalls([worker](const OpenCall& call) { return call.callee.id == worker; },
             "the worker has ended");
  }

  template <typename Error = rankrun::DistNetworkError>
  void EndCalls(const std::function<bool(const OpenCall&)>& is_over, const std::string& why) {
    std::erase_if(open_, [&](const auto& entry) {
      const OpenCall& call = entry.second;
      if (!is_over(call)) return false;
      const Error error("call of " + call.method + " on worker " + call.callee.name + ": " + why);
      Start([promise = call.promise, error] {
        promise.SetException(std::make_exception_ptr(error));
      });
      return true;
    });
  }

  void EndLateCalls() {
    std::unique_lock lock(mutex_);
    while (!has_ended_) {
      const auto now = Clock::now();
      EndCalls<rankrun::DistTimeoutError>(
          [&](const OpenCall& call) { return call.deadline <= now; },
          "there is no reply within its time-out");
      auto next = now + std::chrono::hours(1);
      for (const auto& [number, call] : open_) next = std::min(next, call.deadline);
      changed_.wait_until(lock, next);
    }
  }

  rankrun::Context context_;
  WorkerInfo self_;
  std::vector<WorkerInfo> workers_;                // by id
  std::map<int, std::unique_ptr<Line>> calls_;     // of this worker, by callee
  std::map<int, std::unique_ptr<Line>> requests_;  // of others, by caller
  std::vector<std::thread> threads_;

  mutable std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::map<uint64_t, OpenCall> open_;  // by number
  std::set<int> lost_;                 // workers
  uint64_t begun_ = 0;
  bool has_ended_ = false;
  std::function<void(int)> on_loss_;
  std::atomic<int> tasks_ = 0;
};

rpc::BackendHandlers UnixBackend() {
  rpc::BackendHandlers handlers;
  handlers.construct_options = [](milliseconds rpc_timeout, const std::string& init_method,
                                  const rpc::OptionMap& given) {
    if (!given.empty()) {
      throw rankrun::DistError("UNIX has no option " + given.begin()->first + ": want none");
    }
    auto options = std::make_shared<rpc::RpcBackendOptions>();
    options->rpc_timeout = rpc_timeout;
    options->init_method = init_method;
    return options;
  };
  handlers.init = [](std::shared_ptr<rankrun::Store> store, const std::string& name, int rank,
                     std::optional<int> world_size,
                     const std::shared_ptr<rpc::RpcBackendOptions>& options) {
    if (!world_size) throw rankrun::DistError("UNIX has no dynamic groups: want a world size");
    rankrun::InitOptions place;
    if (options->rpc_timeout > milliseconds(0)) place.timeout = options->rpc_timeout;
    place.init_method = options->init_method;
    place.rank = rank;
    place.world_size = *world_size;
    place.store = std::move(store);
    return std::make_unique<UnixAgent>(name, place);
  };
  return handlers;
}

// Methods of all workers.

int Add(int a, int b) { return a + b; }
int Fail(const std::string& why) { throw std::runtime_error(why); }
std::string Greet(const std::string& name) { return "hello " + name; }
// Reads a value of another worker.
size_t LengthOf(const rpc::RRef<std::string>& text) { return text.ToHere().size(); }
size_t BytesOf(const rpc::TensorValue& tensor) { return tensor.data.bytes.size(); }

std::promise<void> released;

void RegisterMethods() {
  rpc::Register("add", Add);
  rpc::Register("fail", Fail);
  rpc::Register("greet", Greet);
  rpc::Register("length_of", LengthOf);
  rpc::Register("bytes_of", BytesOf);
  rpc::Register("end", [] { std::_Exit(EXIT_SUCCESS); });
  rpc::Register("release", [] { released.set_value(); });
  rpc::RegisterMethod("wait", [](const WorkerInfo&, const Payload&) {
    released.get_future().wait();
    return Payload{};
  });
}

void PrintError(const std::function<void()>& call) {
  try {
    call();
    std::cout << "no error" << std::endl;
  } catch (const rpc::RemoteError& error) {
    std::cout << "RemoteError: " << error.what() << std::endl;
  } catch (const rpc::UnknownMethodError& error) {
    std::cout << "UnknownMethodError: " << error.what() << std::endl;
  } catch (const rankrun::DistTimeoutError& error) {
    std::cout << "DistTimeoutError: " << error.what() << std::endl;
  } catch (const rankrun::DistNetworkError& error) {
    std::cout << "DistNetworkError: " << error.what() << std::endl;
  }
}

void CallOthers() {
  std::cout << "1 + 2 = " << rpc::Call<int>("worker1", "add", 1, 2) << std::endl;
  std::vector<rankrun::Future<int>> sums;
  for (int id = 0; id < 3; ++id) sums.push_back(rpc::CallAsync<int>(id, "add", id, 10));
  for (const auto& sum : sums) std::cout << "async: " << sum.Wait() << std::endl;

  auto text = rpc::CallRemote<std::string>("worker1", "greet", std::string("worker 1"));
  std::cout << text.owner().name << " keeps: " << text.ToHere() << std::endl;
  std::cout << "length: " << rpc::Call<size_t>("worker2", "length_of", text) << std::endl;

  const auto data = std::make_shared<std::vector<std::byte>>(1'000'000);
  const rpc::TensorValue tensor{rankrun::DType::kUInt8, {1'000'000}, {data, *data}};
  std::cout << "bytes: " << rpc::Call<size_t>("worker2", "bytes_of", tensor) << std::endl;

  PrintError([] { rpc::Call<int>("worker2", "fail", std::string("no luck")); });
  PrintError([] { rpc::Call<int>("worker2", "multiply", 2, 3); });
  PrintError([] { rpc::RpcSync("worker1", "wait", {}, milliseconds(50)); });
  rpc::Call<void>("worker1", "release");
}

}  // namespace

int main() {
  try {
    const char* rank = std::getenv("RANK");
    const std::string self = rank == nullptr ? "" : rank;
    rpc::RegisterBackend("UNIX", UnixBackend());
    RegisterMethods();
    rpc::Options options;
    options.backend = "UNIX";

    rpc::Init("worker" + self, options);
    if (self == "0") CallOthers();
    rpc::Shutdown();  // serves the others until they end

    rpc::Init("worker" + self, options);
    if (self == "0") PrintError([] { rpc::Call<void>("worker2", "end"); });
    if (self == "2") pause();  // until "end" is called
    rpc::Shutdown(false);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return EXIT_FAILURE;
  }
}

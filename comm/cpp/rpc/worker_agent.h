#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <rankrun/rpc/backend.h>

#include "comm/rpc/agent.h"
#include "comm/rpc/device_table.h"

namespace rankrun::rpc {

// Manner in which workers come together and part.
class WorkerGroup {
 public:
  virtual ~WorkerGroup() = default;
  // Waits until this worker may end without harm to the others. 0: without a limit.
  virtual void Join(comm::rpc::Agent& agent, std::chrono::milliseconds limit) = 0;
  // Called after the agent is closed, before it is destroyed.
  virtual void Leave() {}
  // Whether no worker of this group has an id that the agent does not know. May wait for a
  // store.
  virtual bool HasLeft(int /*worker*/) { return false; }
  // Called in any thread when the connection with a worker has ended. `has_ended`: the worker
  // has announced its end.
  virtual void OnLost(int /*worker*/, bool /*has_ended*/) {}
};

// Agent of the backends of the library.
class WorkerAgent final : public RpcAgent {
 public:
  // `devices` may change while it runs.
  WorkerAgent(std::unique_ptr<WorkerGroup> group, std::unique_ptr<comm::rpc::Agent> agent,
              std::shared_ptr<const comm::rpc::DeviceTable> devices)
      : devices_(std::move(devices)), group_(std::move(group)), agent_(std::move(agent)) {
    WorkerAgent::SetLossHandler([](int) {});
  }
  ~WorkerAgent() override { WorkerAgent::Shutdown(); }

  WorkerInfo GetWorkerInfo() const override;
  std::vector<WorkerInfo> GetWorkerInfos() const override;
  WorkerInfo Find(const To& to) const override;
  Payload CallAndWait(const WorkerInfo& callee, const std::string& method, Payload arguments,
                      std::chrono::milliseconds limit) override;
  Future<Payload> Call(const WorkerInfo& callee, const std::string& method, Payload arguments,
                       std::chrono::milliseconds limit) override;
  DevicePairs GetDeviceMap(const WorkerInfo& callee) const override {
    return devices_->ForCalls(callee.name);
  }
  DevicePairs GetReverseDeviceMap(const WorkerInfo& caller) const override {
    return devices_->ForReplies(caller.name);
  }
  bool MayArriveOn(const Device& device) const override;
  bool IsLost(int worker) const override;
  void Join(std::chrono::milliseconds limit) override { group_->Join(*agent_, limit); }
  void Shutdown() override;
  void SetLossHandler(std::function<void(int worker)> lost) override;
  std::map<std::string, std::string> GetMetrics() const override;

  comm::rpc::Agent& agent() { return *agent_; }

 private:
  const std::shared_ptr<const comm::rpc::DeviceTable> devices_;  // owners: this and the group
  const std::unique_ptr<WorkerGroup> group_;
  const std::unique_ptr<comm::rpc::Agent> agent_;  // ends before the group
};

// Returns the error of a call that has failed, as RpcSync throws it; null for a reply.
std::exception_ptr ErrorOf(const std::string& callee, const std::string& method,
                           const comm::rpc::Outcome& outcome);

// Throws if the program interrupts its call.
void ThrowIfInterrupted();
// Throws the error of a Join that has waited for its limit.
[[noreturn]] void ThrowUnfinished(int64_t calls_and_methods, std::chrono::milliseconds limit);

// Returns a limit that is never 0.
std::chrono::milliseconds FiniteLimit(std::chrono::milliseconds limit);

struct StaticGroupOptions {
  std::chrono::milliseconds rpc_timeout;
  std::string init_method;
  int methods;  // that run at once
  // Threads that move bytes as messages of the context's backend; 0: TCP connections instead.
  int link_threads = 0;
  comm::rpc::DeviceMaps maps = {};
  std::vector<Device> devices = {};
};
// Connects all workers of a context. Throws the same error on all workers.
std::unique_ptr<RpcAgent> ConnectStaticGroup(std::shared_ptr<Store> store, const std::string& name,
                                             int rank, int world_size,
                                             const StaticGroupOptions& options);
// Joins the workers that are in a store.
std::unique_ptr<RpcAgent> JoinDynamicGroup(const std::shared_ptr<Store>& store,
                                           const std::string& name, int rank,
                                           const TensorPipeRpcBackendOptions& options);

}  // namespace rankrun::rpc

#pragma once

#include <any>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rankrun/export.h>
#include <rankrun/rpc.h>
#include <rankrun/rpc/backend_options.h>
#include <rankrun/store_base.h>

// Backends of RPC: those of the library and those that a program registers.
// Thread: any.
// Source: torch.distributed.rpc.backend_registry.
namespace rankrun::rpc {

namespace internal {
struct RegisteredBackend;
}

// Backend that is registered. Copies are equal; valid for the life of the process.
class RANKRUN_API BackendType {
 public:
  const std::string& name() const;  // "TENSORPIPE"
  std::string Text() const;         // "BackendType.TENSORPIPE"
  bool operator==(const BackendType&) const = default;

 private:
  friend struct internal::RegisteredBackend;
  explicit BackendType(const internal::RegisteredBackend* backend) : backend_(backend) {}

  const internal::RegisteredBackend* backend_;
};

// One worker's part of RPC: it carries calls and replies. Their payloads are opaque bytes and
// attachments, without references. The callee's agent passes each call to RunMethod, and the
// caller's passes the reply to ResultOf. A whole agent: examples/rpc/own_agent.cc.
// Thread: any. Lifetime: the destructor waits for calls of RunMethod.
class RANKRUN_API RpcAgent {
 public:
  virtual ~RpcAgent();

  virtual WorkerInfo GetWorkerInfo() const = 0;
  virtual std::vector<WorkerInfo> GetWorkerInfos() const = 0;  // by id
  // Returns a worker. Throws DistError for one that there is not. By GetWorkerInfos, unless
  // the agent has a faster way.
  virtual WorkerInfo Find(const To& to) const;
  // Call a method of a worker, which may be this one. The limit is 0 or more; 0: none.
  // Errors: those of RpcSync.
  virtual Payload CallAndWait(const WorkerInfo& callee, const std::string& method,
                              Payload arguments, std::chrono::milliseconds limit) = 0;
  virtual Future<Payload> Call(const WorkerInfo& callee, const std::string& method,
                               Payload arguments, std::chrono::milliseconds limit) = 0;
  // Return how attachments of calls of a worker travel, and those of replies to it. By
  // default none leaves the memory of the hosts.
  virtual DevicePairs GetDeviceMap(const WorkerInfo& callee) const;
  virtual DevicePairs GetReverseDeviceMap(const WorkerInfo& caller) const;
  // Whether attachments of other workers may arrive on a device. By default on all.
  virtual bool MayArriveOn(const Device& device) const;
  // Lets `lost` be called, in any thread, for each worker that ends or is lost from now on;
  // not after the agent's end.
  virtual void SetLossHandler(std::function<void(int worker)> lost) = 0;
  // Whether the connection with a worker is lost, or it has left. By default never.
  virtual bool IsLost(int worker) const;
  // Waits until no worker has a call or a method that is not finished. 0: without a limit.
  virtual void Join(std::chrono::milliseconds limit) = 0;
  // Ends the calls of this worker, and the others' to it. Later calls fail.
  virtual void Shutdown() = 0;
  // Numbers of this agent, by name: "agent.thread_pool_size".
  virtual std::map<std::string, std::string> GetMetrics() const = 0;
};

// Runs the method that `caller` calls. Returns the reply, also if the method throws or there is
// none of this name. The method may wait, and call other workers. It waits until Init of this
// worker has returned; an agent takes calls once nothing that makes it can fail any more.
RANKRUN_API Payload RunMethod(const WorkerInfo& caller, const std::string& method,
                              Payload arguments);
// Returns the result that a reply of RunMethod has. Throws RemoteError and UnknownMethodError,
// as RpcSync; DistError for bytes that are no such reply.
RANKRUN_API Payload ResultOf(const WorkerInfo& callee, const std::string& method, Payload reply);

using OptionMap = std::map<std::string, std::any>;

// Functions of a backend.
struct BackendHandlers {
  // Makes the options of ConstructRpcBackendOptions. Throws DistError for an option that the
  // backend does not know.
  std::function<std::shared_ptr<RpcBackendOptions>(
      std::chrono::milliseconds rpc_timeout, const std::string& init_method, const OptionMap&)>
      construct_options;
  // Makes the agent of InitBackend; all workers are connected when it returns. No world size:
  // the workers join and leave at any time. A size of -1, a null store: InitOptions'.
  std::function<std::unique_ptr<RpcAgent>(std::shared_ptr<Store> store, const std::string& name,
                                          int rank, std::optional<int> world_size,
                                          std::shared_ptr<RpcBackendOptions> options)>
      init;
};

RANKRUN_API bool BackendRegistered(const std::string& name);
// Throws DistError for a name that is registered or empty, and without both functions.
RANKRUN_API BackendType RegisterBackend(const std::string& name, BackendHandlers handlers);
// Throws DistError, with the names that there are, for another name.
RANKRUN_API BackendType FindBackend(const std::string& name);

// Call the functions of a backend. InitBackend throws DistError for a null store.
RANKRUN_API std::shared_ptr<RpcBackendOptions> ConstructRpcBackendOptions(
    const BackendType& backend, std::chrono::milliseconds rpc_timeout = std::chrono::seconds(60),
    const std::string& init_method = "env://", const OptionMap& options = {});
RANKRUN_API std::unique_ptr<RpcAgent> InitBackend(const BackendType& backend,
                                                  std::shared_ptr<Store> store,
                                                  const std::string& name, int rank,
                                                  std::optional<int> world_size,
                                                  std::shared_ptr<RpcBackendOptions> options);

}  // namespace rankrun::rpc

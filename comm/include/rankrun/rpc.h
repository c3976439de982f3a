#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rankrun/call_options.h>
#include <rankrun/export.h>
#include <rankrun/future.h>
#include <rankrun/rpc/payload.h>
#include <rankrun/store_base.h>

// Calls of functions in other processes. A function can be called after its process has
// registered it by a name; nothing else is ever carried out.
// Library: librankrun_rpc.so, rankrun::rpc in CMake, rankrun-rpc for pkg-config.
//
//   rpc::RegisterMethod("upper", [](const rpc::WorkerInfo&, const rpc::Payload& text) {
//     return rpc::Payload{Upper(text.bytes)};
//   });
//   rpc::Init("worker" + std::to_string(rank));
//   std::string text = rpc::RpcSync("worker1", "upper", {"text"}).bytes;
//   rpc::Shutdown();
//
// Thread: any, unless a function says otherwise.
// Source: torch.distributed.rpc.
namespace rankrun::rpc {

// Carries out the calls of one name. Several may run at once, in threads of the library; it
// may call other workers. An exception becomes a RemoteError of the caller.
using Method = std::function<Payload(const WorkerInfo& caller, const Payload& arguments)>;
// Throws DistError for a name that is taken, or has not 1 to 255 characters.
RANKRUN_API void RegisterMethod(const std::string& name, Method method);
// The same for methods that make objects for Remote. RpcSync calls them, too, if their values
// can be sent.
using Maker = std::function<OwnedValue(const WorkerInfo& caller, const Payload& arguments)>;
RANKRUN_API void RegisterMaker(const std::string& name, Maker maker);

struct RpcBackendOptions;

struct Options {
  std::string backend = "TENSORPIPE";  // PROCESS_GROUP, or one that is registered (rpc/backend.h)
  // Options of the backend; null: its defaults. Its rpc_timeout limits Init, and each call
  // without a time-out.
  std::shared_ptr<RpcBackendOptions> backend_options = {};
  int rank = -1;                      // InitOptions'; the id of this worker
  int world_size = -1;                // InitOptions'; the number of workers
  std::shared_ptr<Store> store = {};  // InitOptions'
  // Whether workers join and leave at any time. There is no world_size then, a rank of -1
  // becomes the lowest free id, and the store is that of the agent unless `store` is given.
  bool is_dynamic = false;
};

// Connects this worker with all others: with all of the group, which have called it when it
// returns; in a dynamic group with those that are in it.
// `name`: 1 to 127 letters, digits, '-', '_' or ':', another one for each worker.
// Makes the Context "rpc", unless the group is dynamic. A process that ends without Shutdown
// fails the calls to it.
// Errors: those of rankrun::Init, on all workers; DistError for a wrong name, if RPC is
// running already, and at once if workers with and without is_dynamic meet in one store.
RANKRUN_API void Init(const std::string& name, const Options& options = {});
RANKRUN_API bool Initialized();

// Waits until no worker has an unfinished call or method, then ends RPC; another Init may
// follow. All workers call it; in a dynamic group this one leaves once it has no unfinished
// call or method itself. With `graceful` false it ends RPC of this worker at once, and
// the others' calls to it fail. Both wait for methods that still run here. `timeout` limits
// the wait for the others; 0: none. A method must not call it.
// Errors: those of AllReduce; RPC has ended then, too.
RANKRUN_API void Shutdown(bool graceful = true,
                          std::chrono::milliseconds timeout = std::chrono::milliseconds(0));

// Throw DistError before Init, and for a name that no worker has.
RANKRUN_API WorkerInfo GetWorkerInfo();  // of this worker
RANKRUN_API WorkerInfo GetWorkerInfo(const std::string& name);
RANKRUN_API std::vector<WorkerInfo> GetWorkerInfos();  // by id

// Time-out of calls without one; initially that of the backend's options. 0: none.
RANKRUN_API std::chrono::milliseconds GetRpcTimeout();
RANKRUN_API void SetRpcTimeout(std::chrono::milliseconds timeout);

// Worker that is called.
class To {
 public:
  To(const char* name) : name_(name) {}
  To(std::string name) : name_(std::move(name)) {}
  To(int id) : id_(id) {}
  To(const WorkerInfo& worker) : name_(worker.name), id_(worker.id) {}

  const std::optional<std::string>& name() const { return name_; }
  int id() const { return id_; }  // -1: only the name is known

 private:
  std::optional<std::string> name_;
  int id_ = -1;
};

// Calls a method of a worker, which may be this one, and returns its result. `timeout`: no
// value: GetRpcTimeout(); 0: none. A time-out ends the call here only; a method that has begun
// goes on.
// Errors: RemoteError; UnknownMethodError; DistTimeoutError; DistNetworkError, at once, if
// the worker has ended or died, with its name; DistError for an unknown worker, and before
// Init.
RANKRUN_API Payload RpcSync(const To& to, const std::string& method, Payload arguments = {},
                            Timeout timeout = {});
// The same without waiting; errors of the call are those of the future. Functions of Then
// run in a thread of the library.
RANKRUN_API Future<Payload> RpcAsync(const To& to, const std::string& method,
                                     Payload arguments = {}, Timeout timeout = {});

// Calls a method of a worker, which keeps the result. Returns a reference at once; errors of
// the call are those of its functions.
RANKRUN_API Reference Remote(const To& to, const std::string& method, Payload arguments = {},
                             Timeout timeout = {});
// Returns a reference to a value of this worker.
RANKRUN_API Reference MakeReference(OwnedValue value);

}  // namespace rankrun::rpc

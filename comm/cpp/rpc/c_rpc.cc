// RPC in C.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rankrun/c/rpc.h>
#include <rankrun/rpc.h>
#include <rankrun/rpc/backend.h>

#include "comm/c/c_guard.h"

using rankrun::comm::Clear;
using rankrun::comm::CopyOf;
using rankrun::comm::Guarded;
using rankrun::comm::GuardedOr;
using rankrun::comm::NotNull;
using rankrun::comm::OptionsOf;
using rankrun::comm::StatusError;
using rankrun::comm::Text;
using rankrun::comm::ThrowInvalid;
using rankrun::comm::TimeoutOf;
using rankrun::comm::ViewOf;
using rankrun::comm::WriteOptions;
using rankrun::rpc::Payload;
using rankrun::rpc::WorkerInfo;
using std::chrono::milliseconds;

struct rankrun_rpc_reply {
  std::string bytes;
};

struct rankrun_rpc_call {
  rankrun::Future<Payload> future;
};

namespace {

const rankrun::rpc::TensorPipeRpcBackendOptions kBackendDefaults;
const rankrun_rpc_options kDefaults = {.size = sizeof(rankrun_rpc_options),
                                       .rank = -1,
                                       .world_size = -1,
                                       .is_dynamic = 0,
                                       .num_worker_threads = kBackendDefaults.num_worker_threads,
                                       .rpc_timeout_ms = kBackendDefaults.rpc_timeout.count(),
                                       .store = nullptr};

// Runs `call`. The errors of a method get their status of C.
template <typename Call>
auto Remotely(const Call& call) {
  try {
    return call();
  } catch (const rankrun::rpc::RemoteError& error) {
    throw StatusError(RANKRUN_REMOTE, error.what());
  } catch (const rankrun::rpc::UnknownMethodError& error) {
    throw StatusError(RANKRUN_REMOTE, error.what());
  }
}

Payload ArgumentsOf(const rankrun_bytes* given) {
  if (given == nullptr) return {};
  return {std::string(ViewOf(given->data, given->size, "arguments"))};
}

Payload Run(rankrun_rpc_method method, void* context, const WorkerInfo& caller,
            const Payload& arguments) {
  rankrun_rpc_reply reply;
  const rankrun_bytes bytes{const_cast<char*>(arguments.bytes.data()), arguments.bytes.size()};
  int code = method(caller.name.c_str(), &bytes, &reply, context);
  if (code == 0) return {std::move(reply.bytes)};
  if (!reply.bytes.empty()) throw rankrun::DistError(reply.bytes);
  throw rankrun::DistError("it returned " + std::to_string(code));
}

}  // namespace

extern "C" {

rankrun_status rankrun_rpc_reply_set(rankrun_rpc_reply* reply, const void* data, size_t size) {
  return Guarded([&] { NotNull(reply, "reply").bytes = ViewOf(data, size, "data"); });
}

rankrun_status rankrun_rpc_register(const char* name, rankrun_rpc_method method, void* context) {
  return Guarded([&] {
    if (method == nullptr) ThrowInvalid("method is NULL");
    rankrun::rpc::RegisterMethod(Text(name, "name"),
                                 [=](const WorkerInfo& caller, const Payload& arguments) {
                                   return Run(method, context, caller, arguments);
                                 });
  });
}

rankrun_status rankrun_rpc_options_default(rankrun_rpc_options* options) {
  return Guarded([&] { WriteOptions(kDefaults, options); });
}

rankrun_status rankrun_rpc_init(const char* name, const rankrun_rpc_options* options) {
  return Guarded([&] {
    rankrun_rpc_options given = OptionsOf(options, kDefaults);
    auto of_backend = std::make_shared<rankrun::rpc::TensorPipeRpcBackendOptions>();
    of_backend->num_worker_threads = given.num_worker_threads;
    of_backend->rpc_timeout = milliseconds(given.rpc_timeout_ms);
    rankrun::rpc::Options wanted{.backend_options = std::move(of_backend),
                                 .rank = given.rank,
                                 .world_size = given.world_size,
                                 .is_dynamic = given.is_dynamic != 0};
    if (given.store != nullptr) wanted.store = given.store->store;
    rankrun::rpc::Init(Text(name, "name"), wanted);
  });
}

rankrun_status rankrun_rpc_shutdown(int graceful, int64_t timeout_ms) {
  return Guarded([&] {
    rankrun::rpc::Shutdown(graceful != 0, TimeoutOf(timeout_ms).value_or(milliseconds(0)));
  });
}

rankrun_status rankrun_rpc_worker_id(const char* name, int32_t* id) {
  return Guarded([&] {
    using rankrun::rpc::GetWorkerInfo;
    NotNull(id, "id") = name == nullptr ? GetWorkerInfo().id : GetWorkerInfo(name).id;
  });
}

rankrun_status rankrun_rpc_worker_names(rankrun_bytes** names, size_t* count) {
  return Guarded([&] {
    Clear(names, "names");
    NotNull(count, "count") = 0;
    std::vector<std::string> all;
    for (const WorkerInfo& each : rankrun::rpc::GetWorkerInfos()) all.push_back(each.name);
    *names = CopyOf(all);
    *count = all.size();
  });
}

rankrun_status rankrun_rpc_sync(const char* to, const char* method, const rankrun_bytes* arguments,
                                int64_t timeout_ms, rankrun_bytes** result) {
  return Guarded([&] {
    Clear(result, "result");
    Payload reply = Remotely([&] {
      return rankrun::rpc::RpcSync(Text(to, "to"), Text(method, "method"), ArgumentsOf(arguments),
                                   TimeoutOf(timeout_ms));
    });
    *result = CopyOf(reply.bytes);
  });
}

rankrun_rpc_call* rankrun_rpc_async(const char* to, const char* method,
                                    const rankrun_bytes* arguments, int64_t timeout_ms) {
  return GuardedOr<rankrun_rpc_call*>(nullptr, [&] {
    return new rankrun_rpc_call{rankrun::rpc::RpcAsync(
        Text(to, "to"), Text(method, "method"), ArgumentsOf(arguments), TimeoutOf(timeout_ms))};
  });
}

rankrun_status rankrun_rpc_wait(rankrun_rpc_call* call, rankrun_bytes** result) {
  return Guarded([&] {
    Clear(result, "result");
    *result = CopyOf(Remotely([&] { return NotNull(call, "call").future.Wait(); }).bytes);
  });
}

void rankrun_rpc_call_release(rankrun_rpc_call* call) { delete call; }

}  // extern "C"

// The backend "PROCESS_GROUP" of RPC: calls as messages of a backend for collectives, for
// networks that only such a backend reaches.

#include <utility>

#include "comm/cpp/rpc/built_in.h"
#include "comm/cpp/rpc/worker_agent.h"

namespace rankrun::rpc {
namespace {

using std::chrono::milliseconds;

std::unique_ptr<RpcAgent> Connect(std::shared_ptr<Store> store, const std::string& name, int rank,
                                  std::optional<int> world_size,
                                  const ProcessGroupRpcBackendOptions& options) {
  const int threads = options.num_send_recv_threads;
  if (threads < 1) {
    ThrowInvalid("num_send_recv_threads is " + std::to_string(threads) + ": want at least 1");
  }
  if (!world_size) {
    ThrowInvalid("PROCESS_GROUP has no dynamic groups: want TENSORPIPE, or a world size");
  }
  return ConnectStaticGroup(std::move(store), name, rank, *world_size,
                            {.rpc_timeout = options.rpc_timeout,
                             .init_method = options.init_method,
                             .methods = threads,
                             .link_threads = threads});
}

std::shared_ptr<RpcBackendOptions> ConstructOptions(milliseconds rpc_timeout,
                                                    const std::string& init_method,
                                                    const OptionMap& given) {
  auto options = std::make_shared<ProcessGroupRpcBackendOptions>();
  options->rpc_timeout = rpc_timeout;
  options->init_method = init_method;
  for (const auto& option : given) {
    if (option.first != "num_send_recv_threads") {
      ThrowInvalid("PROCESS_GROUP has no option " + option.first + ": want num_send_recv_threads");
    }
    options->num_send_recv_threads = ValueOf<int>(kProcessGroup, option, "int");
  }
  return options;
}

}  // namespace

BackendHandlers ProcessGroupHandlers() {
  return {
      .construct_options = ConstructOptions,
      .init = [](std::shared_ptr<Store> store, const std::string& name, int rank,
                 std::optional<int> world_size, const std::shared_ptr<RpcBackendOptions>& options) {
        auto own = std::dynamic_pointer_cast<ProcessGroupRpcBackendOptions>(options);
        if (own == nullptr) ThrowOtherOptions(kProcessGroup, "ProcessGroupRpcBackendOptions");
        return Connect(std::move(store), name, rank, world_size, *own);
      }};
}

}  // namespace rankrun::rpc

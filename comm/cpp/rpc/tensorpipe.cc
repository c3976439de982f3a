// The backend "TENSORPIPE" of RPC: workers that are connected by TCP.

#include <utility>

#include "comm/cpp/rpc/built_in.h"
#include "comm/cpp/rpc/running.h"
#include "comm/cpp/rpc/worker_agent.h"

namespace rankrun::rpc {
namespace {

using std::chrono::milliseconds;

std::unique_ptr<RpcAgent> Connect(std::shared_ptr<Store> store, const std::string& name, int rank,
                                  std::optional<int> world_size,
                                  const TensorPipeRpcBackendOptions& options) {
  if (options.num_worker_threads < 1) {
    ThrowInvalid("num_worker_threads is " + std::to_string(options.num_worker_threads) +
                 ": want at least 1");
  }
  if (!world_size && options.init_method != RpcBackendOptions().init_method) {
    ThrowInvalid("init_method is \"" + options.init_method +
                 "\": a dynamic group has none: want its store in Options::store");
  }
  if (!world_size) return JoinDynamicGroup(store, name, rank, options);
  return ConnectStaticGroup(std::move(store), name, rank, *world_size,
                            {.rpc_timeout = options.rpc_timeout,
                             .init_method = options.init_method,
                             .methods = options.num_worker_threads,
                             .maps = options.device_maps,
                             .devices = options.devices});
}

std::shared_ptr<RpcBackendOptions> ConstructOptions(milliseconds rpc_timeout,
                                                    const std::string& init_method,
                                                    const OptionMap& given) {
  auto options = std::make_shared<TensorPipeRpcBackendOptions>();
  options->rpc_timeout = rpc_timeout;
  options->init_method = init_method;
  for (const auto& option : given) {
    const std::string& name = option.first;
    if (name == "num_worker_threads") {
      options->num_worker_threads = ValueOf<int>(kTensorPipe, option, "int");
    } else if (name == "device_maps") {
      using Maps = std::map<std::string, DevicePairs>;
      const auto maps =
          ValueOf<Maps>(kTensorPipe, option, "std::map<std::string, rpc::DevicePairs>");
      for (const auto& [callee, pairs] : maps) options->SetDeviceMap(callee, pairs);
    } else if (name == "devices") {
      options->SetDevices(
          ValueOf<std::vector<Device>>(kTensorPipe, option, "std::vector<rankrun::Device>"));
    } else {
      ThrowInvalid("TENSORPIPE has no option " + name +
                   ": want num_worker_threads, device_maps or devices");
    }
  }
  return options;
}

}  // namespace

BackendHandlers TensorPipeHandlers() {
  return {
      .construct_options = ConstructOptions,
      .init = [](std::shared_ptr<Store> store, const std::string& name, int rank,
                 std::optional<int> world_size, const std::shared_ptr<RpcBackendOptions>& options) {
        auto own = std::dynamic_pointer_cast<TensorPipeRpcBackendOptions>(options);
        if (own == nullptr) ThrowOtherOptions(kTensorPipe, "TensorPipeRpcBackendOptions");
        return Connect(std::move(store), name, rank, world_size, *own);
      }};
}

}  // namespace rankrun::rpc

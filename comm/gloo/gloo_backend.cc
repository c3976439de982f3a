#include "comm/gloo/gloo_backend.h"

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#include <net/if.h>

#include <cerrno>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "comm/gloo/gloo_store.h"
#include "comm/gloo/signals.h"

namespace rankrun::comm {
namespace {

// Gloo has one exception for all trouble with a connection; only its words
// tell a deadline ("Timed out waiting 100ms for recv operation to complete",
// "Connect timeout [...]:4711") from a lost peer.
ErrorCode CodeOf(const std::string& words) {
  const bool timeout =
      words.find("imed out") != std::string::npos || words.find("timeout") != std::string::npos;
  return timeout ? ErrorCode::kTimeout : ErrorCode::kPeerLost;
}

// Runs `body`, in which Gloo may throw. `names` turns addresses into ranks.
Result<void> Catching(PeerNames& names, const std::function<void()>& body) {
  const WithoutSigpipe without_sigpipe;
  try {
    body();
    return {};
  } catch (const StoreFailure& failure) {
    return failure.error;
  } catch (const ::gloo::IoException& exception) {
    return Error{CodeOf(exception.what()), names.Translate(exception.what())};
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kSystem, names.Translate(exception.what())};
  }
}

std::shared_ptr<::gloo::transport::Device> MakeDevice(const BackendConfig& config) {
  const WithoutSignals in_gloos_thread;
  ::gloo::transport::tcp::attr attributes;
  if (config.network_interface.empty()) {
    attributes.hostname = config.host;
  } else {
    attributes.iface = config.network_interface;
  }
  return ::gloo::transport::tcp::CreateDevice(attributes);
}

std::string ListenAt(const BackendConfig& config) {
  if (config.network_interface.empty()) return "listen at " + config.host;
  return "listen at interface " + config.network_interface + " (GLOO_SOCKET_IFNAME)";
}

// This rank's addresses as its peers may know them: those it has published, in
// the order of the peers' ranks, and those of the connections. (The accepting
// side of a connection remembers the one or the other, by chance.)
std::vector<PeerAddress> OwnAddresses(::gloo::Context& context,
                                      const std::vector<char>& published) {
  std::vector<PeerAddress> addresses;
  const auto peers = static_cast<std::ptrdiff_t>(context.size - 1);
  auto next = published.begin();
  for (int r = 0; r < context.size; ++r) {
    if (r == context.rank) continue;
    const auto end = next + static_cast<std::ptrdiff_t>(published.size()) / peers;
    const ::gloo::transport::tcp::Address listening(std::vector<char>(next, end));
    addresses.push_back({.peer = r, .address = listening.str()});
    addresses.push_back({.peer = r, .address = context.getPair(r)->address().str()});
    next = end;
  }
  return addresses;
}

}  // namespace

Result<std::unique_ptr<Backend>> GlooBackend::Create(const BackendConfig& config) {
  PeerNames names(config.store, config.key_prefix, config.group_rank, config.world_size());
  // Gloo would find that out as well, but leak and say less.
  if (!config.network_interface.empty() && if_nametoindex(config.network_interface.c_str()) == 0) {
    return SystemError(ListenAt(config), errno);
  }
  std::shared_ptr<::gloo::transport::Device> device;
  if (auto ok = Catching(names, [&] { device = MakeDevice(config); }); !ok) {
    return Error{ErrorCode::kSystem, ok.error().message}.In(ListenAt(config));
  }
  std::shared_ptr<::gloo::Context> context;
  std::vector<PeerAddress> addresses;
  auto connected = Catching(names, [&] {
    auto mesh =
        std::make_shared<::gloo::rendezvous::Context>(config.group_rank, config.world_size());
    mesh->setTimeout(config.timeout);
    GlooStore store(config.store, config.key_prefix, config.timeout);
    mesh->connectFullMesh(store, device);
    addresses = OwnAddresses(*mesh, store.published());
    context = std::move(mesh);
  });
  if (!connected) return std::move(connected).error().In(ListenAt(config));
  if (auto ok = names.Publish(addresses); !ok) {
    return Error{ErrorCode::kProtocol, ok.error().message};
  }
  return std::unique_ptr<Backend>(new GlooBackend(std::move(context), std::move(names)));
}

GlooBackend::GlooBackend(std::shared_ptr<::gloo::Context> context, PeerNames names)
    : context_(std::move(context)), names_(std::move(names)) {}

namespace {
Error NotYet() { return Error{ErrorCode::kSystem, "gloo cannot do this yet"}; }
}  // namespace

Result<void> GlooBackend::AllReduce(std::byte* data, std::size_t count, const Reduction& reduction,
                                    const Call& call) {
  if (reduction.dtype != DType::kFloat32) return NotYet();
  auto ok = Catching(names_, [&] {
    ::gloo::AllreduceOptions options(context_);
    options.setOutput(reinterpret_cast<float*>(data), count);
    Reduction plain = reduction;
    plain.divisor = 1;
    options.setReduceFunction([plain](void* out, const void* a, const void* b, size_t n) {
      const void* const inputs[] = {a, b};
      comm::Reduce(plain, out, inputs, n);
    });
    options.setTag(Tag(call.operation));
    options.setTimeout(call.timeout);
    ::gloo::allreduce(options);
  });
  if (!ok) return ok;
  const void* const inputs[] = {data};
  comm::Reduce(reduction, data, inputs, count);
  return ok;
}

Result<void> GlooBackend::Broadcast(Block data, const Call& call) {
  return Catching(names_, [&] {
    ::gloo::BroadcastOptions options(context_);
    options.setOutput(reinterpret_cast<char*>(data.data), data.bytes);
    options.setRoot(call.operation.root);
    options.setTag(Tag(call.operation));
    options.setTimeout(call.timeout);
    ::gloo::broadcast(options);
  });
}

Result<void> GlooBackend::Barrier(const Call& call) {
  return Catching(names_, [&] {
    ::gloo::BarrierOptions options(context_);
    options.setTag(Tag(call.operation));
    options.setTimeout(call.timeout);
    ::gloo::barrier(options);
  });
}

Result<void> GlooBackend::Reduce(std::byte*, const std::byte*, std::size_t, const Reduction&, const Call&) { return NotYet(); }
Result<void> GlooBackend::AllGather(std::span<const Block>, ConstBlock, const Call&) { return NotYet(); }
Result<void> GlooBackend::Gather(std::span<const Block>, ConstBlock, const Call&) { return NotYet(); }
Result<void> GlooBackend::Scatter(Block, std::span<const ConstBlock>, const Call&) { return NotYet(); }
Result<void> GlooBackend::ReduceScatter(Block, std::span<const ConstBlock>, const Reduction&, const Call&) { return NotYet(); }
Result<void> GlooBackend::AllToAll(std::span<const Block>, std::span<const ConstBlock>, const Call&) { return NotYet(); }
bool GlooBackend::Refuse(const Call&, const std::string&) { return false; }
void GlooBackend::Abort(const std::string&) { context_.reset(); }
Result<std::unique_ptr<Transfer>> GlooBackend::StartSend(ConstBlock, int, const Envelope&) { return NotYet(); }
Result<std::unique_ptr<Transfer>> GlooBackend::StartRecv(Block, std::optional<int>, const Envelope&) { return NotYet(); }

}  // namespace rankrun::comm

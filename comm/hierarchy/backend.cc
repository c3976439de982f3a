#include "comm/hierarchy/backend.h"

#include <algorithm>
#include <utility>

#include "comm/core/time_left.h"
#include "comm/tcp/backend.h"

namespace rankrun::comm::hierarchy {
namespace {

// Bytes of an all-reduce that go through all parts at once: few enough to stay in
// the cache from one part to the next.
constexpr size_t kChunkBytes = size_t{256} << 10;

// Time that a representative may need to find out why the other hosts are late.
constexpr std::chrono::milliseconds kExplaining{1000};

// Members of this rank's host, as a group that shares memory.
BackendConfig ConfigInHost(const BackendConfig& config, const Hosts& hosts) {
  BackendConfig in_host = config;
  in_host.global_ranks.clear();
  in_host.hosts.clear();
  for (int rank : hosts.own_ranks()) {
    in_host.global_ranks.push_back(config.global_ranks[static_cast<size_t>(rank)]);
  }
  in_host.group_rank = hosts.IndexInHost(config.group_rank);
  in_host.key_prefix += "/host_" + std::to_string(hosts.own());
  return in_host;
}

size_t BytesOf(std::span<const Block> blocks, const std::vector<int>& ranks) {
  size_t bytes = 0;
  for (int rank : ranks) bytes += blocks[static_cast<size_t>(rank)].bytes;
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Backend>> HierarchicalBackend::Create(const BackendConfig& config) {
  std::vector<std::string> names = config.hosts;
  names.resize(config.global_ranks.size());
  Hosts hosts(names, config.group_rank);
  auto tcp = tcp::CreateStreamBackend(config);
  if (!tcp) return std::move(tcp).error();
  BackendConfig in_host = ConfigInHost(config, hosts);
  std::unique_ptr<HierarchicalBackend> backend(
      new HierarchicalBackend(std::move(hosts), *std::move(tcp)));
  auto shm = shm::ShmBackend::CreateShm(in_host, backend.get());
  if (!shm) {
    backend->tcp_->Fail(shm.error());
    return std::move(shm).error();
  }
  backend->shm_ = *std::move(shm);
  return std::unique_ptr<Backend>(std::move(backend));
}

bool HierarchicalBackend::Move() {
  if (auto end = tcp_->FindFailureIn(number_, began_)) shm_->Fail(*end);
  return false;
}

Call HierarchicalBackend::Parts::InHost(int root) const {
  return {.operation = call.operation,
          .timeout = TimeLeft(deadline),
          .fingerprint = call.fingerprint,
          .root = root};
}

Call HierarchicalBackend::Parts::InHostAfterHosts(int representative) const {
  Call part = InHost(representative);
  if (representative == own) return part;
  part.timeout += kExplaining;
  part.awaits_hosts = true;
  return part;
}

// Runs the parts of a collective one after the other. An error of one part ends
// all others, also those of other ranks.
Result<void> HierarchicalBackend::Run(const Call& call, const Body& body) {
  began_ = std::chrono::steady_clock::now();
  number_ = call.operation.number;
  Parts parts{.call = call,
              .deadline = began_ + call.timeout,
              .own = hosts_.IndexInHost(tcp_->group_rank())};
  if (auto ok = tcp_->Announce(call); !ok) return Failed(call, ok.error());
  if (auto ok = body(parts); !ok) return Failed(call, ok.error());
  return {};
}

Error HierarchicalBackend::Failed(const Call& call, const Error& error) {
  Error why = error;
  // A refusal in the host leaves the group there as it was, but not elsewhere.
  if (why.code == ErrorCode::kInvalid) why.code = ErrorCode::kSystem;
  if (why.code == ErrorCode::kMismatch) {  // the calls in the host may not be all that differ
    std::string calls = tcp_->CompareCalls(call);
    if (!calls.empty()) why.message = calls;
  }
  shm_->Fail(why);
  tcp_->Fail(why);
  return why;
}

Result<void> HierarchicalBackend::AmongHosts(
    const Parts& parts, const std::function<Result<void>(Backend&, const Call&)>& body) {
  std::vector<int> members = hosts_.Representatives(parts.call.root);
  if (members[static_cast<size_t>(hosts_.own())] != tcp_->group_rank()) return {};
  Representatives representatives(*tcp_, members, hosts_.own());
  Call call = parts.InHost(parts.call.root);
  if (call.root != Operation::kNoRoot) call.root = hosts_.host_of(call.root);
  return body(representatives, call);
}

int HierarchicalBackend::RepresentativeInHost(const Call& call) const {
  int rank = hosts_.Representatives(call.root)[static_cast<size_t>(hosts_.own())];
  return hosts_.IndexInHost(rank);
}

Result<void> HierarchicalBackend::AllReduce(std::byte* data, size_t count,
                                            const Reduction& reduction, const Call& call) {
  return Run(call, [&](const Parts& parts) -> Result<void> {
    size_t element = SizeOf(reduction.dtype);
    size_t begin = 0;
    do {
      size_t some = std::min(count - begin, kChunkBytes / element);
      std::byte* chunk = data + begin * element;
      if (auto ok = AllReduceChunk(chunk, some, reduction, parts); !ok) return ok;
      begin += some;
    } while (begin < count);
    return {};
  });
}

Result<void> HierarchicalBackend::AllReduceChunk(std::byte* data, size_t count,
                                                 const Reduction& reduction, const Parts& parts) {
  auto among_hosts = [&](std::byte* partial) {
    return AmongHosts(parts, [&](Backend& hosts, const Call& part) {
      return hosts.AllReduce(partial, count, reduction, part);
    });
  };
  if (hosts_.own_ranks().size() == 1) return among_hosts(data);
  Reduction sum = reduction;
  sum.divisor = 1;  // only the sum over all hosts is divided
  if (shm_->Relays(count * SizeOf(reduction.dtype))) {
    return shm_->relay().Run(data, count, sum, parts.InHostAfterHosts(0), among_hosts);
  }
  if (auto ok = shm_->Reduce(data, data, count, sum, parts.InHost(0)); !ok) return ok;
  if (auto ok = among_hosts(data); !ok) return ok;
  return shm_->Broadcast({data, count * SizeOf(reduction.dtype)}, parts.InHostAfterHosts(0));
}

Result<void> HierarchicalBackend::Reduce(std::byte* output, const std::byte* input, size_t count,
                                         const Reduction& reduction, const Call& call) {
  return Run(call, [&](const Parts& parts) -> Result<void> {
    int representative = RepresentativeInHost(call);
    bool represents = representative == parts.own;
    std::vector<std::byte> memory;  // of a representative other than the root
    std::byte* partial = output;
    if (represents && call.root != tcp_->group_rank()) {
      memory.resize(count * SizeOf(reduction.dtype));
      partial = memory.data();
    }
    Reduction sum = reduction;
    sum.divisor = 1;
    if (auto ok = shm_->Reduce(partial, input, count, sum, parts.InHost(representative)); !ok) {
      return ok;
    }
    return AmongHosts(parts, [&](Backend& hosts, const Call& part) {
      return hosts.Reduce(output, partial, count, reduction, part);
    });
  });
}

Result<void> HierarchicalBackend::Broadcast(Block data, const Call& call) {
  return Run(call, [&](const Parts& parts) -> Result<void> {
    auto ok = AmongHosts(
        parts, [&](Backend& hosts, const Call& part) { return hosts.Broadcast(data, part); });
    if (!ok) return ok;
    return shm_->Broadcast(data, parts.InHostAfterHosts(RepresentativeInHost(call)));
  });
}

Result<void> HierarchicalBackend::AllGather(std::span<const Block> outputs, ConstBlock input,
                                            const Call& call) {
  return Run(call, [&](const Parts& parts) -> Result<void> {
    std::vector<Block> in_host;
    for (int rank : hosts_.own_ranks()) in_host.push_back(outputs[static_cast<size_t>(rank)]);
    if (auto ok = shm_->AllGather(in_host, input, parts.InHost(call.root)); !ok) return ok;
    return GatherAmongHosts(outputs, parts);
  });
}

// Exchanges the data of whole hosts, each packed into one block.
Result<void> HierarchicalBackend::GatherAmongHosts(std::span<const Block> outputs,
                                                   const Parts& parts) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<Block> packed;
  for (int host = 0; host < hosts_.count(); ++host) {
    std::vector<std::byte>& bytes = memory.emplace_back(BytesOf(outputs, hosts_.ranks(host)));
    packed.push_back({bytes.data(), bytes.size()});
  }
  Block own = packed[static_cast<size_t>(hosts_.own())];
  std::byte* next = own.data;
  for (int rank : hosts_.own_ranks()) {
    const Block& block = outputs[static_cast<size_t>(rank)];
    next = std::copy_n(block.data, block.bytes, next);
  }
  auto ok = AmongHosts(parts, [&](Backend& hosts, const Call& part) {
    return hosts.AllGather(packed, {own.data, own.bytes}, part);
  });
  for (int host = 0; ok && host < hosts_.count(); ++host) {
    if (host == hosts_.own()) continue;
    ok = shm_->Broadcast(packed[static_cast<size_t>(host)], parts.InHostAfterHosts(0));
    next = packed[static_cast<size_t>(host)].data;
    for (int rank : hosts_.ranks(host)) {
      const Block& block = outputs[static_cast<size_t>(rank)];
      if (ok) std::copy_n(next, block.bytes, block.data);
      next += block.bytes;
    }
  }
  return ok;
}

Result<void> HierarchicalBackend::Gather(std::span<const Block> outputs, ConstBlock input,
                                         const Call& call) {
  return RunFlat(call, [&] { return tcp_->Gather(outputs, input, call); });
}

Result<void> HierarchicalBackend::Scatter(Block output, std::span<const ConstBlock> inputs,
                                          const Call& call) {
  return RunFlat(call, [&] { return tcp_->Scatter(output, inputs, call); });
}

Result<void> HierarchicalBackend::ReduceScatter(Block output, std::span<const ConstBlock> inputs,
                                                const Reduction& reduction, const Call& call) {
  return RunFlat(call, [&] { return tcp_->ReduceScatter(output, inputs, reduction, call); });
}

Result<void> HierarchicalBackend::AllToAll(std::span<const Block> outputs,
                                           std::span<const ConstBlock> inputs, const Call& call) {
  return RunFlat(call, [&] { return tcp_->AllToAll(outputs, inputs, call); });
}

Result<void> HierarchicalBackend::RunFlat(const Call& call,
                                          const std::function<Result<void>()>& body) {
  return Run(call, [&](const Parts& parts) -> Result<void> {
    if (auto ok = shm_->Barrier(parts.InHost(call.root)); !ok) return ok;
    return body();
  });
}

Result<void> HierarchicalBackend::Barrier(const Call& call) {
  return Run(call, [&](const Parts& parts) -> Result<void> {
    Call in_host = parts.InHostAfterHosts(RepresentativeInHost(call));
    return shm_->relay().Run(nullptr, 0, {}, in_host, [&](std::byte*) {
      return AmongHosts(parts,
                        [](Backend& hosts, const Call& part) { return hosts.Barrier(part); });
    });
  });
}

Result<void> HierarchicalBackend::Conclude(const Call& call) {
  auto ok = tcp_->Conclude(call);
  if (ok) ok = shm_->Conclude(call);
  if (!ok) return Failed(call, ok.error());
  return {};
}

bool HierarchicalBackend::Refuse(const Call& call, const std::string& reason) {
  shm_->Refuse(call, reason);
  return tcp_->Refuse(call, reason);
}

void HierarchicalBackend::Abort(const std::string& reason) {
  shm_->Abort(reason);
  tcp_->Abort(reason);
}

Result<std::unique_ptr<Transfer>> HierarchicalBackend::StartSend(ConstBlock data, int destination,
                                                                 const Envelope& envelope) {
  return tcp_->StartSend(data, destination, envelope);
}

Result<std::unique_ptr<Transfer>> HierarchicalBackend::StartRecv(Block data,
                                                                 std::optional<int> source,
                                                                 const Envelope& envelope) {
  return tcp_->StartRecv(data, source, envelope);
}

}  // namespace rankrun::comm::hierarchy

#include "comm/hierarchy/backend.h"

#include <algorithm>
#include <utility>

#include "comm/core/time_left.h"
#include "comm/tcp/backend.h"

namespace rankrun::comm::hierarchy {
namespace {

using Kind = Operation::Kind;

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

Call HierarchicalBackend::Parts::Part() const {
  return {
      .operation = call.operation, .timeout = TimeLeft(deadline), .fingerprint = call.fingerprint};
}

Call HierarchicalBackend::Parts::AfterHosts(int representative) const {
  Call part = Part();
  if (representative == own) return part;
  part.timeout += kExplaining;
  part.awaits_hosts = true;
  return part;
}

// Runs the parts of a collective one after the other. An error of one part ends
// all others, also those of other ranks.
Result<void> HierarchicalBackend::Run(const Collective& collective, const Call& call) {
  began_ = std::chrono::steady_clock::now();
  number_ = call.operation.number;
  Parts parts{.call = call,
              .deadline = began_ + call.timeout,
              .own = hosts_.IndexInHost(tcp_->group_rank())};
  if (auto ok = tcp_->Announce(call); !ok) return Failed(call, ok.error());
  if (auto ok = RunParts(collective, parts); !ok) return Failed(call, ok.error());
  return {};
}

Result<void> HierarchicalBackend::RunParts(const Collective& collective, const Parts& parts) {
  switch (collective.kind) {
    case Kind::kAllReduce:
      return AllReduce(collective, parts);
    case Kind::kReduce:
      return Reduce(collective, parts);
    case Kind::kBroadcast:
      return Broadcast(collective, parts);
    case Kind::kAllGather:
      return AllGather(collective, parts);
    case Kind::kBarrier:
      return Barrier(parts);
    default:
      if (auto ok = shm_->Run({.kind = Kind::kBarrier}, parts.Part()); !ok) return ok;
      return tcp_->Run(collective, parts.call);
  }
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

Result<void> HierarchicalBackend::AmongHosts(Collective part, const Parts& parts) {
  std::vector<int> members = hosts_.Representatives(part.root);
  if (members[static_cast<size_t>(hosts_.own())] != tcp_->group_rank()) return {};
  Representatives representatives(*tcp_, members, hosts_.own());
  if (part.root != Operation::kNoRoot) part.root = hosts_.host_of(part.root);
  return representatives.Run(part, parts.Part());
}

int HierarchicalBackend::RepresentativeInHost(int root) const {
  int rank = hosts_.Representatives(root)[static_cast<size_t>(hosts_.own())];
  return hosts_.IndexInHost(rank);
}

Result<void> HierarchicalBackend::AllReduce(const Collective& collective, const Parts& parts) {
  Block data = collective.outputs.front();
  size_t element = SizeOf(collective.reduction.dtype);
  size_t begin = 0;
  do {
    size_t bytes = std::min(data.bytes - begin, kChunkBytes / element * element);
    auto ok = AllReduceChunk({data.data + begin, bytes}, collective.reduction, parts);
    if (!ok) return ok;
    begin += bytes;
  } while (begin < data.bytes);
  return {};
}

Result<void> HierarchicalBackend::AllReduceChunk(Block chunk, const Reduction& reduction,
                                                 const Parts& parts) {
  auto reducing = [&](Kind kind, const Block& block, const ConstBlock& input) {
    return Collective{
        .kind = kind, .outputs = {&block, 1}, .inputs = {&input, 1}, .reduction = reduction};
  };
  auto among_hosts = [&](std::byte* partial) {
    const Block data{partial, chunk.bytes};
    const ConstBlock input{partial, chunk.bytes};
    return AmongHosts(reducing(Kind::kAllReduce, data, input), parts);
  };
  if (hosts_.own_ranks().size() == 1) return among_hosts(chunk.data);
  const ConstBlock input{chunk.data, chunk.bytes};
  Collective in_host = reducing(Kind::kAllReduce, chunk, input);
  in_host.root = 0;
  in_host.reduction.divisor = 1;  // only the sum over all hosts is divided
  if (shm_->Relays(chunk.bytes)) {
    return shm_->relay().Run(in_host, parts.AfterHosts(0), among_hosts);
  }
  in_host.kind = Kind::kReduce;
  if (auto ok = shm_->Run(in_host, parts.Part()); !ok) return ok;
  if (auto ok = among_hosts(chunk.data); !ok) return ok;
  return BroadcastInHost(chunk, 0, parts);
}

Result<void> HierarchicalBackend::Reduce(const Collective& collective, const Parts& parts) {
  int representative = RepresentativeInHost(collective.root);
  bool represents = representative == parts.own;
  std::vector<std::byte> memory;  // of a representative other than the root
  Block partial = collective.outputs.front();
  if (represents && !collective.is_root(tcp_->group_rank())) {
    memory.resize(collective.inputs.front().bytes);
    partial = {memory.data(), memory.size()};
  }
  Collective in_host = collective;
  in_host.root = representative;
  in_host.outputs = {&partial, 1};
  in_host.reduction.divisor = 1;
  if (auto ok = shm_->Run(in_host, parts.Part()); !ok) return ok;
  const ConstBlock input{partial.data, partial.bytes};
  Collective among_hosts = collective;
  among_hosts.inputs = {&input, 1};
  return AmongHosts(among_hosts, parts);
}

Result<void> HierarchicalBackend::Broadcast(const Collective& collective, const Parts& parts) {
  if (auto ok = AmongHosts(collective, parts); !ok) return ok;
  return BroadcastInHost(collective.outputs.front(), RepresentativeInHost(collective.root), parts);
}

Result<void> HierarchicalBackend::BroadcastInHost(Block data, int representative,
                                                  const Parts& parts) {
  return shm_->Run({.kind = Kind::kBroadcast, .root = representative, .outputs = {&data, 1}},
                   parts.AfterHosts(representative));
}

Result<void> HierarchicalBackend::AllGather(const Collective& collective, const Parts& parts) {
  std::vector<Block> in_host;
  for (int rank : hosts_.own_ranks()) {
    in_host.push_back(collective.outputs[static_cast<size_t>(rank)]);
  }
  auto ok = shm_->Run({.kind = Kind::kAllGather, .outputs = in_host, .inputs = collective.inputs},
                      parts.Part());
  if (!ok) return ok;
  return GatherAmongHosts(collective.outputs, parts);
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
  const ConstBlock input{own.data, own.bytes};
  auto ok = AmongHosts({.kind = Kind::kAllGather, .outputs = packed, .inputs = {&input, 1}}, parts);
  for (int host = 0; ok && host < hosts_.count(); ++host) {
    if (host == hosts_.own()) continue;
    ok = BroadcastInHost(packed[static_cast<size_t>(host)], 0, parts);
    next = packed[static_cast<size_t>(host)].data;
    for (int rank : hosts_.ranks(host)) {
      const Block& block = outputs[static_cast<size_t>(rank)];
      if (ok) std::copy_n(next, block.bytes, block.data);
      next += block.bytes;
    }
  }
  return ok;
}

Result<void> HierarchicalBackend::Barrier(const Parts& parts) {
  const Collective barrier{.kind = Kind::kBarrier};
  Collective in_host = barrier;
  in_host.root = RepresentativeInHost(Operation::kNoRoot);
  return shm_->relay().Run(in_host, parts.AfterHosts(in_host.root),
                           [&](std::byte*) { return AmongHosts(barrier, parts); });
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

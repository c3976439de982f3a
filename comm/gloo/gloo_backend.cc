#include "comm/gloo/gloo_backend.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "base/signals_blocked.h"
#include "comm/gloo/gloo_words.h"
#include "comm/gloo/without_sigpipe.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

// How long a group that is left keeps its connections for what is not sent yet.
constexpr milliseconds kFlush{1000};

// The same for the reason, when a group has failed: others may be stopped.
constexpr milliseconds kFarewell{10};

// Where the parts of `count` elements begin, one part per rank.
std::size_t PartBegin(std::size_t count, int part, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  const auto i = static_cast<std::size_t>(part);
  return count / n * i + std::min(count % n, i);
}

template <typename Block, typename Byte>
std::vector<Block> Parts(Byte* data, std::size_t count, DType dtype, int ranks) {
  std::vector<Block> parts;
  const std::size_t size = SizeOf(dtype);
  for (int i = 0; i < ranks; ++i) {
    const std::size_t begin = PartBegin(count, i, ranks) * size;
    parts.push_back({data + begin, PartBegin(count, i + 1, ranks) * size - begin});
  }
  return parts;
}

std::size_t Largest(const std::vector<ConstBlock>& blocks) {
  std::size_t largest = 0;
  for (const ConstBlock& block : blocks) largest = std::max(largest, block.bytes);
  return largest;
}

template <typename Block>
std::vector<Block> ToVector(std::span<const Block> blocks) {
  return {blocks.begin(), blocks.end()};
}

}  // namespace

Result<std::unique_ptr<Backend>> GlooBackend::Create(const BackendConfig& config) {
  auto mesh = BuildMesh(config);
  if (!mesh) return std::move(mesh).error();
  try {
    return std::unique_ptr<Backend>(new GlooBackend(config, *std::move(mesh)));
  } catch (const std::system_error& error) {
    return SystemError("start a thread", error.code().value());
  }
}

GlooBackend::GlooBackend(const BackendConfig& config, Mesh mesh)
    : global_ranks_(config.global_ranks),
      checks_all_calls_(config.checks_all_calls),
      context_(std::move(mesh.context)),
      control_(std::move(mesh.control)),
      notes_(config, *control_),
      watch_(config, notes_, *control_, wakeup_),
      messages_(config, context_, *control_, notes_, wakeup_),
      executor_(context_, watch_) {
  const SignalsBlocked in_the_thread;
  attendant_ = std::thread([this] { Attend(); });
}

GlooBackend::~GlooBackend() {
  const WithoutSigpipe without_sigpipe;
  leaving_ = true;
  wakeup_.Set();
  attendant_.join();
  messages_.Stop({ErrorCode::kCancelled, "the process group is destroyed"});
  if (ended_) return;
  notes_.SayFarewellOnLeaving();
  control_->Flush(kFlush);
}

Result<void> GlooBackend::AllReduce(std::byte* data, std::size_t count, const Reduction& reduction,
                                    const Call& call) {
  if (count == 0) return RunEmpty(call);
  const int ranks = context_->size;
  if (ranks == 1) {
    const std::array<const void*, 1> own{data};
    comm::Reduce(reduction, data, own, count);
  }
  return Run(
      call, AllReduceRing(SeatIn(call)),
      {.outputs = Parts<Block>(data, count, reduction.dtype, ranks), .reduction = reduction});
}

Result<void> GlooBackend::Reduce(std::byte* output, const std::byte* input, std::size_t count,
                                 const Reduction& reduction, const Call& call) {
  if (count == 0) return RunEmpty(call);
  const int ranks = context_->size;
  Blocks blocks{.inputs = Parts<ConstBlock>(input, count, reduction.dtype, ranks),
                .reduction = reduction};
  if (call.operation.root == context_->rank) {
    blocks.outputs = Parts<Block>(output, count, reduction.dtype, ranks);
  }
  blocks.scratch_bytes = Largest(blocks.inputs);
  auto ok = Run(call, ReduceRing(SeatIn(call)), blocks);
  if (ok && ranks == 1) {
    const std::array<const void*, 1> own{input};
    comm::Reduce(reduction, output, own, count);
  }
  return ok;
}

Result<void> GlooBackend::Broadcast(Block data, const Call& call) {
  if (data.bytes == 0) return RunEmpty(call);
  return Run(call, BroadcastTree(SeatIn(call)), {.outputs = {data}});
}

Result<void> GlooBackend::AllGather(std::span<const Block> outputs, ConstBlock input,
                                    const Call& call) {
  return RunUneven(call, AllGatherPairwise(SeatIn(call)),
                   {.inputs = {input}, .outputs = ToVector(outputs)});
}

Result<void> GlooBackend::Gather(std::span<const Block> outputs, ConstBlock input,
                                 const Call& call) {
  return RunUneven(call, GatherLinear(SeatIn(call)),
                   {.inputs = {input}, .outputs = ToVector(outputs)});
}

Result<void> GlooBackend::Scatter(Block output, std::span<const ConstBlock> inputs,
                                  const Call& call) {
  return RunUneven(call, ScatterLinear(SeatIn(call)),
                   {.inputs = ToVector(inputs), .outputs = {output}});
}

Result<void> GlooBackend::ReduceScatter(Block output, std::span<const ConstBlock> inputs,
                                        const Reduction& reduction, const Call& call) {
  Blocks blocks{.inputs = ToVector(inputs), .outputs = {output}, .reduction = reduction};
  blocks.scratch_bytes = Largest(blocks.inputs);
  if (blocks.scratch_bytes == 0) return RunEmpty(call);
  auto ok = Run(call, ReduceScatterRing(SeatIn(call)), blocks);
  if (ok && context_->size == 1) {
    const std::array<const void*, 1> own{output.data};
    comm::Reduce(reduction, output.data, own, output.bytes / SizeOf(reduction.dtype));
  }
  return ok;
}

Result<void> GlooBackend::AllToAll(std::span<const Block> outputs,
                                   std::span<const ConstBlock> inputs, const Call& call) {
  return RunUneven(call, AllToAllPairwise(SeatIn(call)),
                   {.inputs = ToVector(inputs), .outputs = ToVector(outputs)});
}

Result<void> GlooBackend::Barrier(const Call& call) { return RunEmpty(call); }

bool GlooBackend::Refuse(const Call& call, const std::string& reason) {
  const Error why{ErrorCode::kSystem,
                  OwnName() + " refused " + Describe(call.operation) + ": " + reason};
  notes_.Leave(why);
  End(why, why);
  return false;
}

void GlooBackend::Abort(const std::string& reason) {
  const Error for_others{ErrorCode::kPeerLost, reason};
  notes_.Leave(for_others);
  End({ErrorCode::kCancelled, reason}, for_others);
}

Result<std::unique_ptr<Transfer>> GlooBackend::StartSend(ConstBlock data, int destination,
                                                         const Envelope& envelope) {
  return messages_.Start({.is_send = true,
                          .data = const_cast<std::byte*>(data.data),  // only read
                          .bytes = data.bytes,
                          .envelope = envelope,
                          .peer = destination});
}

Result<std::unique_ptr<Transfer>> GlooBackend::StartRecv(Block data, std::optional<int> source,
                                                         const Envelope& envelope) {
  return messages_.Start({.is_send = false,
                          .data = data.data,
                          .bytes = data.bytes,
                          .envelope = envelope,
                          .peer = source});
}

Seat GlooBackend::SeatIn(const Call& call) const {
  return {.rank = context_->rank, .ranks = context_->size, .root = call.operation.root};
}

Result<void> GlooBackend::Perform(const Call& call, const std::function<void()>& body) {
  const WithoutSigpipe without_sigpipe;
  std::optional<Ended> ended;
  watch_.Begin(call);
  try {
    if (checks_all_calls_) CheckCall(call);
    body();
  } catch (const Ended& thrown) {
    ended = thrown;
  } catch (const std::bad_alloc&) {
    ended = Ended{.why = {ErrorCode::kExhausted, "no memory for it"}, .is_own = true};
  } catch (const std::exception& exception) {
    ended = Ended{.why = {ErrorCode::kSystem, PlainWords(exception.what())}, .is_own = true};
  }
  watch_.End();
  if (!ended) return {};
  // What messages and the other ranks end with says which call it was.
  Error for_messages = ended->why;
  Error for_others = ended->why;
  if (ended->is_own) {
    for_messages = std::move(for_messages).In(Describe(call.operation));
    for_others = {ErrorCode::kPeerLost, OwnName() + ": " + for_messages.message};
  }
  End(for_messages, for_others);
  return ended->why;
}

Result<void> GlooBackend::Run(const Call& call, const Schedule& schedule, const Blocks& blocks) {
  return Perform(call, [&] { executor_.Run(schedule, blocks, call.operation); });
}

Result<void> GlooBackend::RunUneven(const Call& call, const Schedule& schedule,
                                    const Blocks& blocks) {
  return Perform(call, [&] {
    const auto difference = executor_.CompareSizes(schedule, blocks, call.operation, global_ranks_);
    if (difference) {
      const Error why{ErrorCode::kMismatch, *difference};
      notes_.Leave(why);
      throw Ended{.why = why};
    }
    executor_.Run(schedule, blocks, call.operation);
  });
}

Result<void> GlooBackend::RunEmpty(const Call& call) {
  std::byte out{};
  std::byte in{};
  return Run(call, BarrierDissemination(SeatIn(call)),
             {.inputs = {{&out, 1}}, .outputs = {{&in, 1}}});
}

// Everybody shows everybody what it has called; only then data moves.
void GlooBackend::CheckCall(const Call& call) {
  struct Word {
    uint64_t fingerprint;
    std::array<char, 120> description;
  };
  std::vector<Word> words(global_ranks_.size());
  Word own{.fingerprint = call.fingerprint, .description = {}};
  const std::string text = Describe(call.operation);
  std::memcpy(own.description.data(), text.data(),
              std::min(text.size(), own.description.size() - 1));
  Blocks blocks{.inputs = {{reinterpret_cast<std::byte*>(&own), sizeof own}}};
  for (Word& word : words) {
    blocks.outputs.push_back({reinterpret_cast<std::byte*>(&word), sizeof word});
  }
  executor_.RunOn(SlotOf(SlotUse::kCheck, call.operation.number),
                  AllGatherPairwise({context_->rank, context_->size}), blocks);
  const bool same = std::all_of(words.begin(), words.end(), [&](const Word& word) {
    return word.fingerprint == own.fingerprint;
  });
  if (same) return;
  Calls calls;
  for (const Word& word : words) calls.emplace_back(word.description.data());
  const Error why{ErrorCode::kMismatch, DescribeCalls(calls, global_ranks_)};
  notes_.Leave(why);
  throw Ended{.why = why};
}

std::string GlooBackend::OwnName() const {
  return NameRanks({global_ranks_[static_cast<std::size_t>(context_->rank)]});
}

// For good, on both sides. Gloo has one way to do that which also wakes those
// who wait: a wait whose time is up.
void GlooBackend::Disconnect() {
  char unused = 0;
  const auto buffer = context_->createUnboundBuffer(&unused, sizeof unused);
  try {
    buffer->waitRecv(milliseconds(1));
  } catch (const std::exception&) {
    // It says that its time is up.
  }
}

void GlooBackend::End(const Error& why, const Error& for_others) {
  const WithoutSigpipe without_sigpipe;
  // Whoever comes second waits, as its caller frees the blocks then.
  std::lock_guard lock(end_mutex_);
  if (std::exchange(ended_, true)) return;
  watch_.Stop(why);
  messages_.Stop(why);
  notes_.SayFarewell(for_others);
  control_->Flush(kFarewell);  // data may be before it
  Disconnect();
}

// The backend's thread.
void GlooBackend::Attend() {
  while (!leaving_) {
    const TimePoint now = std::chrono::steady_clock::now();
    const TimePoint next = std::min(watch_.Look(now), messages_.Poll(now));
    if (next <= now) {
      std::this_thread::yield();
    } else {
      wakeup_.SleepUntil(next);
    }
  }
}

}  // namespace rankrun::comm

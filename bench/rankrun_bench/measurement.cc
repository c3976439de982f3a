#include "bench/rankrun_bench/measurement.h"

#include <algorithm>
#include <span>

namespace rankrun::bench {
namespace {

constexpr auto kPoison = std::byte{0xff};

bool HasPartPerRank(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
         collective == Collective::kAllToAll;
}

bool IsInPlace(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kBroadcast;
}

double Largest(ProcessGroup& world, double value) {
  world.AllReduce(Tensor(&value, DType::kFloat64, 1), ReduceOp::kMax);
  return value;
}

int64_t Total(ProcessGroup& world, int64_t value) {
  world.AllReduce(Tensor(&value, DType::kInt64, 1));
  return value;
}

}  // namespace

double BusFactor(Collective collective, int ranks) {
  double others = static_cast<double>(ranks - 1) / ranks;
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * others;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return others;
    case Collective::kBroadcast:
    case Collective::kSendRecv:
    case Collective::kBarrier:
      return 1;
  }
  return 1;
}

Measurement::Measurement(ProcessGroup& world, const Options& options, Collective collective,
                         size_t bytes)
    : world_(world),
      options_(options),
      collective_(collective),
      rank_(world.global_rank()),
      ranks_(world.world_size()) {
  if (collective == Collective::kBarrier) return;
  size_t size = SizeOf(options.dtype);
  size_t parts = HasPartPerRank(collective) ? static_cast<size_t>(ranks_) : 1;
  count_ = std::max<size_t>(1, bytes / size / parts);
  ChooseParts();
  input_.resize(inputs_.size() * count_ * size);
  if (!IsInPlace(collective)) output_.resize(expected_.size() * count_ * size);
}

size_t Measurement::bytes() const { return std::max(input_.size(), output_.size()); }

void Measurement::ChooseParts() {
  int next = (rank_ + 1) % ranks_;
  int previous = (rank_ + ranks_ - 1) % ranks_;
  auto each = [this](auto part_of) {
    std::vector<Part> parts;
    for (int r = 0; r < ranks_; ++r) parts.push_back(part_of(r));
    return parts;
  };
  Part own{.source = {.from = rank_}};
  switch (collective_) {
    case Collective::kAllReduce:
      inputs_ = {own};
      expected_ = {Part{.source = {}, .reduced = true}};
      return;
    case Collective::kAllGather:
      inputs_ = {own};
      expected_ = each([](int r) { return Part{.source = {.from = r}}; });
      return;
    case Collective::kReduceScatter:
      inputs_ = each([&](int r) { return Part{.source = {.from = rank_, .to = r}}; });
      expected_ = {Part{.source = {.to = rank_}, .reduced = true}};
      return;
    case Collective::kBroadcast:
      inputs_ = {own};
      expected_ = {Part{.source = {.from = options_.root}}};
      return;
    case Collective::kAllToAll:
      inputs_ = each([&](int r) { return Part{.source = {.from = rank_, .to = r}}; });
      expected_ = each([&](int r) { return Part{.source = {.from = r, .to = rank_}}; });
      return;
    case Collective::kSendRecv:
      inputs_ = {Part{.source = {.from = rank_, .to = next}}};
      expected_ = {Part{.source = {.from = previous, .to = rank_}}};
      return;
    case Collective::kBarrier:
      return;
  }
}

Tensor Measurement::Input() {
  return {input_.data(), options_.dtype, input_.size() / SizeOf(options_.dtype)};
}
Tensor Measurement::Output() {
  return {output_.data(), options_.dtype, output_.size() / SizeOf(options_.dtype)};
}

void Measurement::Call() {
  switch (collective_) {
    case Collective::kAllReduce:
      world_.AllReduce(Input(), options_.op);
      return;
    case Collective::kAllGather:
      world_.AllGatherInto(Output(), Input());
      return;
    case Collective::kReduceScatter:
      world_.ReduceScatterFrom(Output(), Input(), options_.op);
      return;
    case Collective::kBroadcast:
      world_.Broadcast(Input(), GlobalRank{options_.root});
      return;
    case Collective::kAllToAll:
      world_.AllToAllSingle(Output(), Input());
      return;
    case Collective::kSendRecv: {
      const P2POp messages[] = {
          {P2POp::Kind::kSend, Input(), GlobalRank{(rank_ + 1) % ranks_}},
          {P2POp::Kind::kRecv, Output(), GlobalRank{(rank_ + ranks_ - 1) % ranks_}}};
      for (const Work& work : world_.Batch(messages)) work.Wait();
      return;
    }
    case Collective::kBarrier:
      world_.Barrier();
      return;
  }
}

std::vector<std::byte> Measurement::TileOf(Part part, int round) const {
  part.source.round = round;
  return part.reduced ? ReducedTile(options_.dtype, options_.op, ranks_, part.source)
                      : Tile(options_.dtype, part.source, options_.op);
}

void Measurement::Prepare(int round) {
  size_t part_bytes = count_ * SizeOf(options_.dtype);
  std::fill(output_.begin(), output_.end(), kPoison);
  if (collective_ == Collective::kBroadcast && rank_ != options_.root) {
    std::fill(input_.begin(), input_.end(), kPoison);
    return;
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Fill(std::span(input_).subspan(i * part_bytes, part_bytes), TileOf(inputs_[i], round));
  }
}

int64_t Measurement::CountWrong(int round) {
  size_t part_bytes = count_ * SizeOf(options_.dtype);
  std::span<const std::byte> result = IsInPlace(collective_) ? input_ : output_;
  int64_t wrong = 0;
  for (size_t i = 0; i < expected_.size(); ++i) {
    wrong += bench::CountWrong(options_.dtype, result.subspan(i * part_bytes, part_bytes),
                               TileOf(expected_[i], round));
  }
  return wrong;
}

Figures Measurement::Run() {
  Figures figures{.bytes = bytes(), .count = count_};
  int round = 0;
  Prepare(round);
  figures.times = MeasureBatches(
      options_.plan, [this] { Call(); },
      [this](double seconds) { return Largest(world_, seconds); },
      [&] {
        // After the batch an in-place buffer holds sums of sums, so check one
        // more call with new data.
        Prepare(++round);
        Call();
        figures.wrong += CountWrong(round);
      });
  figures.wrong = Total(world_, figures.wrong);
  figures.algorithm_bandwidth =
      static_cast<double>(figures.bytes) / figures.times.microseconds / 1e3;
  figures.bus_bandwidth = figures.algorithm_bandwidth * BusFactor(collective_, ranks_);
  return figures;
}

}  // namespace rankrun::bench

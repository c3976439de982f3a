#include "tests/comm/death_calls.h"

#include <cstring>
#include <span>

#include <rankrun/objects.h>

namespace rankrun::comm {
namespace {

constexpr std::size_t kStep = 8;  // from a place that is looked at to the next

// What that rank gives to the call there. Three of them have an exact sum.
float Value(const CallData& my, int rank, std::size_t place) {
  const std::size_t value = my.number * 1009 + place / kStep * 4 + std::size_t(rank);
  return static_cast<float>(value % (1 << 20));
}
float Sum(const CallData& my, std::size_t place) {
  return Value(my, 0, place) + Value(my, 1, place) + Value(my, 2, place);
}

std::size_t PlaceOf(const CallData& my, int part) { return std::size_t(part) * my.part; }

void Fill(const CallData& my, std::vector<float>& data) {
  for (std::size_t i = 0; i < data.size(); i += kStep) data[i] = Value(my, my.rank, i);
}

template <typename ValueAt>
bool Holds(const std::vector<float>& data, const ValueAt& value) {
  for (std::size_t i = 0; i < data.size(); i += kStep) {
    if (data[i] != value(i)) return false;
  }
  return true;
}
bool HoldsSums(const CallData& my, const std::vector<float>& data, std::size_t first = 0) {
  return Holds(data, [&](std::size_t i) { return Sum(my, first + i); });
}
// What that rank has given from `first` on.
bool HoldsThatOf(const CallData& my, int rank, const std::vector<float>& data,
                 std::size_t first = 0) {
  return Holds(data, [&](std::size_t i) { return Value(my, rank, first + i); });
}
// The same of all ranks, one after the other.
bool OutputHoldsAll(const CallData& my, std::size_t first = 0) {
  return Holds(my.output, [&](std::size_t i) {
    return Value(my, static_cast<int>(i / my.part), first + i % my.part);
  });
}

std::vector<Tensor> Parts(const CallData& my, std::vector<float>& data) {
  std::vector<Tensor> parts;
  for (int r = 0; r < kRanks; ++r) {
    parts.emplace_back(data.data() + PlaceOf(my, r), DType::kFloat32, my.part);
  }
  return parts;
}

bool AllReduces(ProcessGroup& group, CallData& my) {
  Fill(my, my.output);
  group.AllReduce(my.output);
  return HoldsSums(my, my.output);
}

bool AllGathers(ProcessGroup& group, CallData& my) {
  Fill(my, my.own);
  group.AllGather(Parts(my, my.output), my.own);
  return OutputHoldsAll(my);
}

bool ReduceScatters(ProcessGroup& group, CallData& my) {
  Fill(my, my.input);
  group.ReduceScatterFrom(my.own, my.input);
  return HoldsSums(my, my.own, PlaceOf(my, my.rank));
}

bool AllToAlls(ProcessGroup& group, CallData& my) {
  Fill(my, my.input);
  group.AllToAllSingle(my.output, my.input);
  return OutputHoldsAll(my, PlaceOf(my, my.rank));
}

bool AllGathersObjects(ProcessGroup& group, CallData& my) {
  Fill(my, my.own);
  const auto bytes = std::as_bytes(std::span(my.own));
  const auto objects = AllGatherObject(group, Object(bytes.begin(), bytes.end()));
  for (int r = 0; r < kRanks; ++r) {
    const Object& object = objects[std::size_t(r)];
    if (object.size() != bytes.size()) return false;
    std::memcpy(my.output.data() + PlaceOf(my, r), object.data(), object.size());
  }
  return OutputHoldsAll(my);
}

// To the next rank, from the one before.
bool SendsAndReceives(ProcessGroup& group, CallData& my) {
  const int next = (my.rank + 1) % kRanks;
  const int previous = (my.rank + kRanks - 1) % kRanks;
  Fill(my, my.input);
  const Work send = group.ISend(my.input, GlobalRank{next});
  group.Recv(my.output, GlobalRank{previous});
  send.Wait();
  return HoldsThatOf(my, previous, my.output);
}

DeathCall Reduces(int root) {
  return [root](ProcessGroup& group, CallData& my) {
    Fill(my, my.output);
    group.Reduce(my.output, GlobalRank{root});
    return my.rank == root ? HoldsSums(my, my.output) : HoldsThatOf(my, my.rank, my.output);
  };
}

DeathCall Broadcasts(int root) {
  return [root](ProcessGroup& group, CallData& my) {
    Fill(my, my.output);
    group.Broadcast(my.output, GlobalRank{root});
    return HoldsThatOf(my, root, my.output);
  };
}

DeathCall Gathers(int root) {
  return [root](ProcessGroup& group, CallData& my) {
    Fill(my, my.own);
    const auto outputs = my.rank == root ? Parts(my, my.output) : std::vector<Tensor>();
    group.Gather(outputs, my.own, GlobalRank{root});
    return my.rank != root || OutputHoldsAll(my);
  };
}

DeathCall Scatters(int root) {
  return [root](ProcessGroup& group, CallData& my) {
    Fill(my, my.input);
    const auto parts = my.rank == root ? Parts(my, my.input) : std::vector<Tensor>();
    const std::vector<ConstTensor> inputs(parts.begin(), parts.end());
    group.Scatter(my.own, inputs, GlobalRank{root});
    return HoldsThatOf(my, root, my.own, PlaceOf(my, my.rank));
  };
}

bool Meets(ProcessGroup& group, CallData&) {
  group.Barrier();
  return true;
}

bool MeetsInTheStore(ProcessGroup& group, CallData&) {
  group.MonitoredBarrier();
  return true;
}

bool MakesAGroup(ProcessGroup&, CallData& my) {
  ProcessGroup& group = NewGroup({.timeout = my.timeout});
  Destroy(group);
  return true;
}

}  // namespace

const DeathCalls& CallsOfTheBackend() {
  static const DeathCalls kCalls{
      {"AllReduce", AllReduces},
      {"Reduce", Reduces(0)},
      {"ReduceToVictim", Reduces(kVictim)},
      {"Broadcast", Broadcasts(0)},
      {"BroadcastFromVictim", Broadcasts(kVictim)},
      {"AllGather", AllGathers},
      {"Gather", Gathers(0)},
      {"GatherToVictim", Gathers(kVictim)},
      {"Scatter", Scatters(0)},
      {"ScatterFromVictim", Scatters(kVictim)},
      {"ReduceScatter", ReduceScatters},
      {"AllToAll", AllToAlls},
      {"Barrier", Meets},
      {"AllGatherObject", AllGathersObjects},
      {"SendRecv", SendsAndReceives},
  };
  return kCalls;
}

const DeathCalls& CallsOfTheStore() {
  static const DeathCalls kCalls{{"MonitoredBarrier", MeetsInTheStore}, {"NewGroup", MakesAGroup}};
  return kCalls;
}

}  // namespace rankrun::comm

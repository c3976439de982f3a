#include "tests/comm/death_calls.h"

#include <cstring>
#include <span>

#include <rankrun/objects.h>

namespace rankrun::comm {
namespace {

constexpr size_t kStep = 8;  // elements from one checked position to the next

// Returns a rank's input to a call at one position. The sum of three inputs is
// exact.
float Value(const CallData& my, int rank, size_t place) {
  size_t value = my.number * 1009 + place / kStep * 4 + size_t(rank);
  return static_cast<float>(value % (1 << 20));
}
float Sum(const CallData& my, size_t place) {
  return Value(my, 0, place) + Value(my, 1, place) + Value(my, 2, place);
}

size_t PlaceOf(const CallData& my, int part) { return size_t(part) * my.part; }

void Fill(const CallData& my, std::vector<float>& data) {
  for (size_t i = 0; i < data.size(); i += kStep) data[i] = Value(my, my.rank, i);
}

template <typename ValueAt>
bool Holds(const std::vector<float>& data, const ValueAt& value) {
  for (size_t i = 0; i < data.size(); i += kStep) {
    if (data[i] != value(i)) return false;
  }
  return true;
}
bool HoldsSums(const CallData& my, const std::vector<float>& data, size_t first = 0) {
  return Holds(data, [&](size_t i) { return Sum(my, first + i); });
}
// Returns whether `data` equals the input of `rank` from `first` on.
bool HoldsThatOf(const CallData& my, int rank, const std::vector<float>& data, size_t first = 0) {
  return Holds(data, [&](size_t i) { return Value(my, rank, first + i); });
}
// Returns whether the output holds the inputs of all ranks, one after the
// other.
bool OutputHoldsAll(const CallData& my, size_t first = 0) {
  return Holds(my.output, [&](size_t i) {
    return Value(my, static_cast<int>(i / my.part), first + i % my.part);
  });
}

std::vector<Tensor> Parts(const CallData& my, std::vector<float>& data) {
  std::vector<Tensor> parts;
  for (int r = 0; r < kCallRanks; ++r) {
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
  auto bytes = std::as_bytes(std::span(my.own));
  auto objects = AllGatherObject(group, Object(bytes.begin(), bytes.end()));
  for (int r = 0; r < kCallRanks; ++r) {
    const Object& object = objects[size_t(r)];
    if (object.size() != bytes.size()) return false;
    std::memcpy(my.output.data() + PlaceOf(my, r), object.data(), object.size());
  }
  return OutputHoldsAll(my);
}

// Sends to the next rank and receives from the previous one.
bool SendsAndReceives(ProcessGroup& group, CallData& my) {
  int next = (my.rank + 1) % kCallRanks;
  int previous = (my.rank + kCallRanks - 1) % kCallRanks;
  Fill(my, my.input);
  Work send = group.ISend(my.input, GlobalRank{next});
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
    auto outputs = my.rank == root ? Parts(my, my.output) : std::vector<Tensor>();
    group.Gather(outputs, my.own, GlobalRank{root});
    return my.rank != root || OutputHoldsAll(my);
  };
}

DeathCall Scatters(int root) {
  return [root](ProcessGroup& group, CallData& my) {
    Fill(my, my.input);
    auto parts = my.rank == root ? Parts(my, my.input) : std::vector<Tensor>();
    std::vector<ConstTensor> inputs(parts.begin(), parts.end());
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
      {"ReduceToVictim", Reduces(kCallVictim)},
      {"Broadcast", Broadcasts(0)},
      {"BroadcastFromVictim", Broadcasts(kCallVictim)},
      {"AllGather", AllGathers},
      {"Gather", Gathers(0)},
      {"GatherToVictim", Gathers(kCallVictim)},
      {"Scatter", Scatters(0)},
      {"ScatterFromVictim", Scatters(kCallVictim)},
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

#include <nlohmann/json.hpp>

#include "tests/comm/conformance.h"

namespace rankrun::comm {
namespace {

// Tensors for the lists in `values`.
struct Parts {
  Parts(const Json& vector, const Json& values, bool to_become) {
    for (const Json& part : values) {
      elements.push_back(to_become ? Elements::ToBecome(vector, part) : Elements(vector, part));
    }
    for (Elements& each : elements) {
      outputs.push_back(each.tensor());
      inputs.push_back(each.tensor());
    }
  }

  std::string Differ(const Json& values) const {
    ThePlaceOfElements().await();  // there may be no elements
    std::string text;
    for (size_t i = 0; i < elements.size(); ++i) text += elements[i].Differ(values.at(i));
    return text;
  }

  std::vector<Elements> elements;
  std::vector<Tensor> outputs;
  std::vector<ConstTensor> inputs;
};

Peer RootOf(const Json& vector) { return GlobalRank{vector.at("root").get<int>()}; }
bool IsRoot(const ProcessGroup& world, const Json& vector) {
  return world.global_rank() == vector.at("root").get<int>();
}

// Runs in place. A rank without a result must keep its input.
std::string InPlace(ProcessGroup& world, const Json& vector,
                    Work (*call)(ProcessGroup&, Tensor, const Json&)) {
  Elements data(vector, OfRank(vector.at("in"), world));
  Work work = call(world, data.tensor(), vector);
  if (work.sequence() != 1) return "it took no place in the sequence";
  const Json& out = OfRank(vector.at("out"), world);
  return data.Differ(out.is_null() ? OfRank(vector.at("in"), world) : out);
}

std::string AllReduce(ProcessGroup& world, const Json& vector) {
  return InPlace(world, vector, [](ProcessGroup& group, Tensor data, const Json& how) {
    return group.AllReduce(data, OpOf(how, group.global_rank()));
  });
}

// A computation after Wait() sees the result.
std::string AllReduceAsyncThenAdd(ProcessGroup& world, const Json& vector) {
  Elements data(vector, OfRank(vector.at("in"), world));
  world.AllReduce(data.tensor(), OpOf(vector, world.global_rank()), kAsync).Wait();
  data.Change([&](double number) { return number + vector.at("then_add").get<double>(); });
  return data.Differ(OfRank(vector.at("out"), world));
}

// Starts the average of a bucket of gradients; the caller waits when it needs
// the result.
Work AverageHook(ProcessGroup& world, Elements& bucket) {
  bucket.Change([&](double number) { return number / world.world_size(); });
  return world.AllReduce(bucket.tensor(), ReduceOp::kSum, kAsync);
}

// Runs several buckets at the same time.
std::string DivideThenAllReduceAsync(ProcessGroup& world, const Json& vector) {
  std::vector<Elements> buckets(8, Elements(vector, OfRank(vector.at("in"), world)));
  std::vector<Work> works;
  for (Elements& bucket : buckets) works.push_back(AverageHook(world, bucket));
  for (const Work& work : works) work.Wait();
  std::string wrong;
  for (const Elements& bucket : buckets) wrong += bucket.Differ(OfRank(vector.at("out"), world));
  return wrong;
}

std::string Reduce(ProcessGroup& world, const Json& vector) {
  return InPlace(world, vector, [](ProcessGroup& group, Tensor data, const Json& how) {
    return group.Reduce(data, RootOf(how), OpOf(how, group.global_rank()));
  });
}

std::string Broadcast(ProcessGroup& world, const Json& vector) {
  return InPlace(world, vector, [](ProcessGroup& group, Tensor data, const Json& how) {
    return group.Broadcast(data, RootOf(how));
  });
}

std::string AllGather(ProcessGroup& world, const Json& vector) {
  const Json& out = OfRank(vector.at("out"), world);
  Elements input(vector, OfRank(vector.at("in"), world));
  Parts outputs(vector, out, true);
  world.AllGather(outputs.outputs, input.tensor());
  return outputs.Differ(out);
}

std::string AllGatherInto(ProcessGroup& world, const Json& vector) {
  const Json& out = OfRank(vector.at("out"), world);
  Elements input(vector, OfRank(vector.at("in"), world));
  Elements output = Elements::ToBecome(vector, out);
  world.AllGatherInto(output.tensor(), input.tensor());
  return output.Differ(out);
}

std::string Gather(ProcessGroup& world, const Json& vector) {
  Json none = Json::array();
  const Json& out = IsRoot(world, vector) ? OfRank(vector.at("out"), world) : none;
  Elements input(vector, OfRank(vector.at("in"), world));
  Parts outputs(vector, out, true);
  world.Gather(outputs.outputs, input.tensor(), RootOf(vector));
  return outputs.Differ(out);
}

std::string Scatter(ProcessGroup& world, const Json& vector) {
  Json none = Json::array();
  const Json& out = OfRank(vector.at("out"), world);
  Parts inputs(vector, IsRoot(world, vector) ? OfRank(vector.at("in"), world) : none, false);
  Elements output = Elements::ToBecome(vector, out);
  world.Scatter(output.tensor(), inputs.inputs, RootOf(vector));
  return output.Differ(out);
}

std::string ReduceScatter(ProcessGroup& world, const Json& vector) {
  const Json& out = OfRank(vector.at("out"), world);
  Parts inputs(vector, OfRank(vector.at("in"), world), false);
  Elements output = Elements::ToBecome(vector, out);
  world.ReduceScatter(output.tensor(), inputs.inputs, OpOf(vector, world.global_rank()));
  return output.Differ(out);
}

std::string ReduceScatterFrom(ProcessGroup& world, const Json& vector) {
  const Json& out = OfRank(vector.at("out"), world);
  Elements input(vector, OfRank(vector.at("in"), world));
  Elements output = Elements::ToBecome(vector, out);
  world.ReduceScatterFrom(output.tensor(), input.tensor(), OpOf(vector, world.global_rank()));
  return output.Differ(out);
}

std::string AllToAll(ProcessGroup& world, const Json& vector) {
  const Json& out = OfRank(vector.at("out"), world);
  Parts inputs(vector, OfRank(vector.at("in"), world), false);
  Parts outputs(vector, out, true);
  world.AllToAll(outputs.outputs, inputs.inputs);
  return outputs.Differ(out);
}

std::vector<size_t> SplitsIn(const Json& vector, const char* name, const ProcessGroup& world) {
  if (!vector.contains(name)) return {};
  return OfRank(vector.at(name), world).get<std::vector<size_t>>();
}

std::string AllToAllSingle(ProcessGroup& world, const Json& vector) {
  const Json& out = OfRank(vector.at("out"), world);
  Elements in(vector, OfRank(vector.at("in"), world));
  Elements result = Elements::ToBecome(vector, out);
  Tensor input = in.tensor();
  Tensor output = result.tensor();
  input.row = output.row = vector.value("row", size_t{1});
  world.AllToAllSingle(output, input, SplitsIn(vector, "out_splits", world),
                       SplitsIn(vector, "in_splits", world));
  return result.Differ(out);
}

}  // namespace

const std::map<std::string, VectorRun>& CollectiveRuns() {
  static const std::map<std::string, VectorRun> kRuns{
      {"all_reduce", AllReduce},
      {"all_reduce_async_then_add", AllReduceAsyncThenAdd},
      {"divide_then_all_reduce_async", DivideThenAllReduceAsync},
      {"reduce", Reduce},
      {"broadcast", Broadcast},
      {"all_gather", AllGather},
      {"all_gather_into_tensor", AllGatherInto},
      {"gather", Gather},
      {"scatter", Scatter},
      {"reduce_scatter", ReduceScatter},
      {"reduce_scatter_tensor", ReduceScatterFrom},
      {"all_to_all", AllToAll},
      {"all_to_all_single", AllToAllSingle},
  };
  return kRuns;
}

}  // namespace rankrun::comm

#include <nlohmann/json.hpp>

#include <rankrun/objects.h>

#include "tests/comm/conformance.h"

namespace rankrun::comm {
namespace {

// Objects are CBOR, which the vectors contain as hexadecimal digits.
Object ObjectOf(const Json& digits) {
  auto text = digits.get<std::string>();
  Object object;
  for (size_t i = 0; i < text.size(); i += 2) {
    object.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return object;
}

std::vector<Object> ObjectsOf(const Json& list) {
  std::vector<Object> objects;
  for (const Json& each : list) objects.push_back(ObjectOf(each));
  return objects;
}

std::string Differ(const std::vector<Object>& objects, const Json& wanted) {
  if (objects == ObjectsOf(wanted)) return "";
  return "got " + std::to_string(objects.size()) + " others than " + wanted.dump();
}

std::string SendAndReceive(ProcessGroup& world, const Json& vector) {
  GlobalRank root{vector.at("root").get<int>()};
  GlobalRank destination{vector.at("dst").get<int>()};
  if (world.global_rank() == root.value) {
    SendObjects(world, ObjectsOf(OfRank(vector.at("in"), world)), destination);
    return "";
  }
  const Json& out = OfRank(vector.at("out"), world);
  std::vector<Object> objects(out.size());
  int sender = RecvObjects(world, objects, root);
  if (sender != root.value) return "it came from rank " + std::to_string(sender);
  return Differ(objects, out);
}

std::string Broadcast(ProcessGroup& world, const Json& vector) {
  GlobalRank root{vector.at("root").get<int>()};
  const Json& in = OfRank(vector.at("in"), world);
  const Json& out = OfRank(vector.at("out"), world);
  std::vector<Object> objects = in.is_null() ? std::vector<Object>(out.size()) : ObjectsOf(in);
  BroadcastObjects(world, objects, root);
  return Differ(objects, out);
}

std::string AllGather(ProcessGroup& world, const Json& vector) {
  auto objects = AllGatherObject(world, ObjectOf(OfRank(vector.at("in"), world)));
  return Differ(objects, vector.at("out").at(0));
}

std::string Gather(ProcessGroup& world, const Json& vector) {
  const Json& out = OfRank(vector.at("out"), world);
  auto objects = GatherObject(world, ObjectOf(OfRank(vector.at("in"), world)),
                              GlobalRank{vector.at("root").get<int>()});
  return Differ(objects, out.is_null() ? Json::array() : out);
}

std::string Scatter(ProcessGroup& world, const Json& vector) {
  const Json& in = OfRank(vector.at("in"), world);
  auto objects = in.is_null() ? std::vector<Object>() : ObjectsOf(in);
  Object mine = ScatterObjects(world, objects, GlobalRank{vector.at("root").get<int>()});
  return Differ({mine}, Json::array({OfRank(vector.at("out"), world)}));
}

}  // namespace

const std::map<std::string, VectorRun>& ObjectRuns() {
  static const std::map<std::string, VectorRun> kRuns{
      {"send_object_list", SendAndReceive},
      {"recv_object_list", SendAndReceive},
      {"broadcast_object_list", Broadcast},
      {"all_gather_object", AllGather},
      {"gather_object", Gather},
      {"scatter_object_list", Scatter},
  };
  return kRuns;
}

}  // namespace rankrun::comm

#include <rankrun/c/objects.h>
#include <rankrun/objects.h>

#include "comm/c/c_guard.h"

namespace {

using rankrun::GlobalRank;
using rankrun::Object;
using rankrun::comm::Clear;
using rankrun::comm::CopyOf;
using rankrun::comm::GroupOf;
using rankrun::comm::Guarded;
using rankrun::comm::ListOf;
using rankrun::comm::NotNull;
using rankrun::comm::SourceOf;
using rankrun::comm::TimeoutOf;

Object ObjectOf(const rankrun_bytes& bytes, const char* name) {
  auto data = ListOf(static_cast<const std::byte*>(bytes.data), bytes.size, name);
  return {data.begin(), data.end()};
}

std::vector<Object> ObjectsOf(const rankrun_bytes* objects, size_t count) {
  std::vector<Object> result;
  for (const rankrun_bytes& object : ListOf(objects, count, "objects")) {
    result.push_back(ObjectOf(object, "objects.data"));
  }
  return result;
}

}  // namespace

extern "C" {

rankrun_status rankrun_broadcast_objects(rankrun_group* group, const rankrun_bytes* objects,
                                         size_t count, int root, int64_t timeout_ms,
                                         rankrun_bytes** received) {
  return Guarded([=] {
    Clear(received, "received");
    auto& members = GroupOf(group);
    std::vector<Object> all(count);
    if (members.global_rank() == root) all = ObjectsOf(objects, count);
    rankrun::BroadcastObjects(members, all, GlobalRank{root}, TimeoutOf(timeout_ms));
    *received = CopyOf(all);
  });
}

rankrun_status rankrun_all_gather_object(rankrun_group* group, const rankrun_bytes* object,
                                         int64_t timeout_ms, rankrun_bytes** received) {
  return Guarded([=] {
    Clear(received, "received");
    Object mine = ObjectOf(NotNull(object, "object"), "object.data");
    *received = CopyOf(rankrun::AllGatherObject(GroupOf(group), mine, TimeoutOf(timeout_ms)));
  });
}

rankrun_status rankrun_gather_object(rankrun_group* group, const rankrun_bytes* object, int root,
                                     int64_t timeout_ms, rankrun_bytes** received) {
  return Guarded([=] {
    Clear(received, "received");
    Object mine = ObjectOf(NotNull(object, "object"), "object.data");
    *received = CopyOf(
        rankrun::GatherObject(GroupOf(group), mine, GlobalRank{root}, TimeoutOf(timeout_ms)));
  });
}

rankrun_status rankrun_scatter_objects(rankrun_group* group, const rankrun_bytes* objects,
                                       size_t count, int root, int64_t timeout_ms,
                                       rankrun_bytes** received) {
  return Guarded([=] {
    Clear(received, "received");
    std::vector<Object> all = ObjectsOf(objects, count);
    std::vector<Object> mine = {
        rankrun::ScatterObjects(GroupOf(group), all, GlobalRank{root}, TimeoutOf(timeout_ms))};
    *received = CopyOf(mine);
  });
}

rankrun_status rankrun_send_objects(rankrun_group* group, const rankrun_bytes* objects,
                                    size_t count, int destination, int tag, int64_t timeout_ms) {
  return Guarded([=] {
    rankrun::SendObjects(GroupOf(group), ObjectsOf(objects, count), GlobalRank{destination}, tag,
                         TimeoutOf(timeout_ms));
  });
}

rankrun_status rankrun_recv_objects(rankrun_group* group, size_t count, int source, int tag,
                                    int64_t timeout_ms, rankrun_bytes** received, int* sender) {
  return Guarded([=] {
    Clear(received, "received");
    std::vector<Object> all(count);
    const int from =
        rankrun::RecvObjects(GroupOf(group), all, SourceOf(source), tag, TimeoutOf(timeout_ms));
    *received = CopyOf(all);
    if (sender != nullptr) *sender = from;
  });
}

}  // extern "C"

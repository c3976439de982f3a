#include <algorithm>
#include <nlohmann/json.hpp>

#include <rankrun/distributed.h>

#include "tests/comm/conformance.h"

namespace rankrun::comm {
namespace {

// Each rank sends to the next and receives from the one before.
std::string Ring(ProcessGroup& world, const Json& vector) {
  int rank = world.global_rank();
  int ranks = world.world_size();
  const Json& out = OfRank(vector.at("out"), world);
  Elements sent(vector, OfRank(vector.at("in"), world));
  Elements received = Elements::ToBecome(vector, out);
  const P2POp operations[] = {
      {.kind = P2POp::Kind::kSend, .tensor = sent.tensor(), .peer = GlobalRank{(rank + 1) % ranks}},
      {.kind = P2POp::Kind::kRecv,
       .tensor = received.tensor(),
       .peer = GlobalRank{(rank + ranks - 1) % ranks}}};
  for (const Work& work : world.Batch(operations)) work.Wait();
  return received.Differ(out);
}

std::string ToItself(ProcessGroup& world, const Json& vector) {
  const Json& out = OfRank(vector.at("out"), world);
  Elements sent(vector, OfRank(vector.at("in"), world));
  Elements received = Elements::ToBecome(vector, out);
  Work receive = world.IRecv(received.tensor(), GlobalRank{0});
  world.ISend(sent.tensor(), GlobalRank{0}).Wait();
  receive.Wait();
  return received.Differ(out);
}

// "out" contains the pairs of sender and value that rank 0 receives, in any
// order.
std::string FromAnyone(ProcessGroup& world, const Json& vector) {
  if (world.global_rank() > 0) {
    Elements sent(vector, OfRank(vector.at("in"), world));
    world.Send(sent.tensor(), GlobalRank{0});
    return "";
  }
  const Json& pairs = vector.at("out").at("rank0_set");
  std::vector<int> senders;
  for (size_t i = 0; i < pairs.size(); ++i) {
    Elements received = Elements::ToBecome(vector, pairs[i].at(1));
    int sender = world.Recv(received.tensor());
    auto pair = std::find_if(pairs.begin(), pairs.end(),
                             [&](const Json& each) { return each.at(0) == sender; });
    if (pair == pairs.end()) return "rank " + std::to_string(sender) + " has sent nothing";
    if (std::string wrong = received.Differ(pair->at(1)); !wrong.empty()) return wrong;
    senders.push_back(sender);
  }
  std::sort(senders.begin(), senders.end());
  bool twice = std::adjacent_find(senders.begin(), senders.end()) != senders.end();
  return twice ? "one message came twice" : "";
}

// Rank 0 sends with tags 5 and 6; rank 1 receives tag 6 first.
std::string ByTag(ProcessGroup& world, const Json& vector) {
  if (world.global_rank() == 0) {
    const Json& sent = vector.at("in").at("0");
    Elements first(vector, sent.at(0).at(1));
    Elements second(vector, sent.at(1).at(1));
    const Work works[] = {world.ISend(first.tensor(), GlobalRank{1}, 5),
                          world.ISend(second.tensor(), GlobalRank{1}, 6)};
    for (const Work& work : works) work.Wait();
    return "";
  }
  const Json& out = vector.at("out").at("1");
  Elements six = Elements::ToBecome(vector, out.at("recv_tag6_first"));
  Elements five = Elements::ToBecome(vector, out.at("then_tag5"));
  world.Recv(six.tensor(), GlobalRank{0}, 6);
  world.Recv(five.tensor(), GlobalRank{0}, 5);
  return six.Differ(out.at("recv_tag6_first")) + five.Differ(out.at("then_tag5"));
}

std::string AllReduceInGroups(ProcessGroup& world, const Json& vector) {
  Elements data(vector, OfRank(vector.at("in"), world));
  std::vector<ProcessGroup*> groups;
  for (const Json& ranks : vector.at("groups")) groups.push_back(&NewGroup({.ranks = ranks}));
  for (ProcessGroup* group : groups) {
    if (group->is_member()) group->AllReduce(data.tensor(), OpOf(vector, world.global_rank()));
  }
  return data.Differ(OfRank(vector.at("out"), world));
}

// Ranks that are no members call it, too, without effect.
std::string BroadcastInGroup(ProcessGroup& world, const Json& vector) {
  Elements data(vector, OfRank(vector.at("in"), world));
  ProcessGroup& group = NewGroup({.ranks = vector.at("group")});
  group.Broadcast(data.tensor(), GroupRank{vector.at("group_src").get<int>()});
  return data.Differ(OfRank(vector.at("out"), world));
}

std::string Translation(ProcessGroup& world, const Json& vector) {
  const ProcessGroup& group = NewGroup({.ranks = vector.at("in").at("group")});
  Json out{{"group_rank_of_3", group.GroupRankOf(GlobalRank{3})},
           {"global_rank_of_0", group.GlobalRankOf(GroupRank{0})},
           {"ranks", group.global_ranks()},
           {"rank_on_0", -1},
           {"size_on_0", -1}};
  if (world.global_rank() == 0) {
    out["rank_on_0"] = group.group_rank();
    out["size_on_0"] = group.world_size();
  }
  const Json& wanted = vector.at("out");
  return out == wanted ? "" : "got " + out.dump() + ", want " + wanted.dump();
}

}  // namespace

const std::map<std::string, VectorRun>& MessageRuns() {
  static const std::map<std::string, VectorRun> kRuns{
      {"batch_isend_irecv", Ring},
      {"isend_irecv_self", ToItself},
      {"recv_any", FromAnyone},
      {"send_tags", ByTag},
      {"all_reduce_in_groups", AllReduceInGroups},
      {"broadcast_in_group", BroadcastInGroup},
      {"rank_translation", Translation},
  };
  return kRuns;
}

}  // namespace rankrun::comm

#include "tests/sim/verdict/scene.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <utility>

namespace rankrun::sim {
namespace {

using enum End;

constexpr int kMaxNodes = 5;
constexpr int kMaxWorkers = 4;        // of a usual node
constexpr int kMaxManyWorkers = 300;  // more than a report can describe

using Ends = std::vector<End>;

// An end of a culprit and the ends of its victims beside which a user recognizes it.
struct Fault {
  const char* name;
  End culprit;
  Ends some;                    // each is the end of one other worker
  Ends others;                  // possible ends of the rest
  bool is_known_first = false;  // nothing but the time of its end speaks against the culprit
};

Ends Join(std::initializer_list<Ends> parts) {
  Ends all;
  for (const Ends& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

const Ends kWaiters = {kLosesPeer, kTimesOut, kInputEnds};
// Workers that only notice our signal, and those that had nothing to do any more.
const Ends kBystanders = {kStopped, kRaisesLate, kExitsLate, kSucceedsLate, kLeavesEarly};
const Ends kAllVictims = Join({kWaiters, kBystanders, {kNamesCulprit}});
const Ends kNoHandlers = {kLosesPeer, kTimesOut, kInputEnds, kStopped, kSucceedsLate, kLeavesEarly};

const Fault kFaults[] = {
    {"hangs", kHangs, {}, Join({kAllVictims, {kExits, kExitsWarned, kCutInException}})},
    {"is the first of two that hang", kHangs, {kHangs}, kAllVictims},
    {"cannot start", kCannotStart, {}, Join({kAllVictims, {kExitsWarned, kCutInException}})},
    {"exits", kExits, {}, Join({kAllVictims, {kExitsWarned, kCutInException}})},
    {"raises", kRaises, {}, Join({kAllVictims, {kExitsWarned, kCutInException, kNamesVictim}})},
    {"dies of a signal", kDiesOfSignal, {}, Join({kAllVictims, {kExitsWarned, kNamesVictim}})},
    {"exits, as do victims, but is named",
     kExits,
     {kNamesCulprit, kExits},
     Join({kAllVictims, {kExits}})},
    {"exits, as do victims, but earlier", kExits, {kExits}, Join({kWaiters, {kExits}}), true},
    {"is silent, but named",
     kStopped,
     {kNamesCulprit},
     Join({kAllVictims, {kCutInException, kExitsWarned, kNamesVictim}})},
    {"is silent, but named by most",
     kStopped,
     {kNamesCulprit, kNamesCulprit, kTimesOut, kNamesWaiter},
     kAllVictims},
    {"raises late, and all others lost it in words of their own",
     kRaisesLate,
     {kLosesPeerInItsWords, kLosesPeerInItsWords},
     {kLosesPeerInItsWords}},
    {"exits, all others lose it in words of their own, and a handler raises",
     kExits,
     {kLosesPeerInItsWords, kLosesPeerInItsWords, kRaisesLate},
     {kLosesPeerInItsWords},
     true},
    {"raises late, but is named", kRaisesLate, {kNamesCulprit}, kAllVictims},
    {"exits late, but is named", kExitsLate, {kNamesCulprit}, kAllVictims},
    {"times out, but is named", kTimesOut, {kNamesCulprit}, kAllVictims},
    {"has a short input, but is named", kInputEnds, {kNamesCulprit}, kAllVictims},
    {"exits late",
     kExitsLate,
     {kLosesPeer},
     Join({kNoHandlers, {kRaisesLate, kCutInException, kExitsWarned, kNamesVictim}})},
    {"exits after a warning",
     kExitsWarned,
     {},
     Join({kNoHandlers, {kRaisesLate, kCutInException, kNamesVictim}})},
    {"is silent, and all others lost it",
     kStopped,
     {kLosesPeer, kTimesOut},
     {kLosesPeer, kTimesOut}},
    {"raises late, and all others lost it", kRaisesLate, {kLosesPeer, kInputEnds}, kWaiters},
    {"is cut in its exception",
     kCutInException,
     {kLosesPeer},
     Join({kNoHandlers, {kRaisesLate, kNamesVictim}})},
    {"has a short file",
     kInputEnds,
     {kStopped, kStopped},
     {kLosesPeer, kTimesOut, kStopped, kRaisesLate, kSucceedsLate, kLeavesEarly}},
    {"has a short file, one is silent",
     kInputEnds,
     {kStopped, kLosesPeer},
     {kLosesPeer, kTimesOut}},
    {"has a short file, handlers exit",
     kInputEnds,
     {kExitsLate, kExitsLate},
     {kLosesPeer, kExitsLate, kRaisesLate, kSucceedsLate}},
    {"times out",
     kTimesOut,
     {kStopped, kStopped},
     {kLosesPeer, kStopped, kRaisesLate, kSucceedsLate, kLeavesEarly}},
    {"times out, all others lose it", kTimesOut, {kLosesPeer}, {kLosesPeer}},
    {"times out, handlers raise", kTimesOut, {kRaisesLate, kRaisesLate}, {kLosesPeer, kRaisesLate}},
    {"leaves early",
     kLeavesEarly,
     {kLosesPeer},
     {kLosesPeer, kNamesCulprit, kStopped, kRaisesLate, kSucceedsLate}},
    {"raises late", kRaisesLate, {kLosesPeer, kStopped}, {kLosesPeer, kStopped, kSucceedsLate}},
    {"is the only one that raises late", kRaisesLate, {kLosesPeer}, {kLosesPeer}},
    {"loses a service", kLosesPeer, {kStopped}, {kStopped, kSucceedsLate}, true},
    {"loses a service, others have left",
     kLosesPeer,
     {kLeavesEarly, kLeavesEarly},
     {kLeavesEarly, kStopped, kSucceedsLate},
     true},
    {"loses a service, handlers raise",
     kLosesPeer,
     {kRaisesLate, kRaisesLate},
     {kRaisesLate},
     true},
    {"logs an error, then all lose a peer", kLogsAndLosesPeer, {kLosesPeer}, {kLosesPeer}},
    {"logs an error, then all raise the same one",
     kLogsAndRaises,
     {kLosesPeerInItsWords, kLosesPeerInItsWords},
     {kLosesPeerInItsWords}},
    {"calls another collective",
     kComparesCalls,
     {kComparesCalls, kComparesCalls},
     {kComparesCalls}},
};

// Returns a rank with one of these ends, or -1.
int RankOf(const std::vector<Actor>& actors, int namer, std::initializer_list<End> ends,
           Dice& dice) {
  std::vector<int> found;
  for (const Actor& actor : actors) {
    const bool fits = std::ranges::find(ends, actor.end) != ends.end();
    if (fits && actor.rank != namer) found.push_back(actor.rank);
  }
  if (found.empty()) return -1;
  return found[static_cast<size_t>(dice.Below(static_cast<int>(found.size())))];
}

void NameRanks(std::vector<Actor>& actors, int culprit, Dice& dice) {
  for (Actor& actor : actors) {
    const bool is_culprit = actor.rank == culprit;
    if (actor.end == kNamesCulprit) actor.named = culprit;
    if (actor.end == kComparesCalls) {
      actor.named = is_culprit ? RankOf(actors, culprit, {kComparesCalls}, dice) : culprit;
    }
    if (actor.end == kNamesWaiter) actor.named = RankOf(actors, actor.rank, {kTimesOut}, dice);
    if (actor.end != kNamesVictim) continue;
    actor.named = RankOf(actors, actor.rank, {kLosesPeer, kNamesCulprit}, dice);
    if (actor.named < 0) actor.end = kLosesPeer;
  }
}

// Some end notices the fault before the agents do; a hang is noticed by them.
void ChooseTimes(std::vector<Actor>& actors, const Fault& fault, int culprit, Dice& dice) {
  for (Actor& actor : actors) {
    actor.is_late = MustBeLate(actor.end) || (MayBeLate(actor.end) && dice.Chance(50));
    if (actor.rank == culprit && fault.is_known_first) actor.is_late = false;
  }
  const auto is_early_failure = [](const Actor& a) { return IsFailure(a.end) && !a.is_late; };
  if (fault.culprit == kHangs || std::ranges::any_of(actors, is_early_failure)) return;
  for (Actor& actor : actors) {
    if (!MayBeLate(actor.end) || MustBeLate(actor.end)) continue;
    actor.is_late = false;
    return;
  }
}

template <typename T>
void Shuffle(std::span<T> items, Dice& dice) {
  for (size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<size_t>(dice.Below(static_cast<int>(i)))]);
  }
}

// Chooses the ends of all workers and returns the rank of the culprit.
int CastRoles(std::vector<Actor>& actors, const Fault& fault, Dice& dice) {
  Ends ends = {fault.culprit};
  ends.insert(ends.end(), fault.some.begin(), fault.some.end());
  while (ends.size() < actors.size()) {
    ends.push_back(
        fault.others[static_cast<size_t>(dice.Below(static_cast<int>(fault.others.size())))]);
  }
  std::vector<size_t> order(actors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  Shuffle(std::span(order), dice);
  for (size_t i = 0; i < order.size(); ++i) actors[order[i]].end = ends[i];
  auto culprit = static_cast<int>(order[0]);
  // Ranks of a deadlock are equal, and the lowest stands for them.
  for (const Actor& actor : actors) {
    if (fault.culprit == kHangs && actor.end == kHangs) culprit = std::min(culprit, actor.rank);
  }
  NameRanks(actors, culprit, dice);
  ChooseTimes(actors, fault, culprit, dice);
  return culprit;
}

// Chooses in which order the agent sees the ends: those after its signal come last.
void ChooseOrder(SceneNode& node, const Scene& scene, Dice& dice) {
  for (size_t i = 0; i < node.actors.size(); ++i) node.ended.push_back(i);
  Shuffle(std::span(node.ended), dice);
  std::stable_partition(node.ended.begin(), node.ended.end(),
                        [&](size_t i) { return !node.actors[i].is_late; });
  const auto is_first = [&](size_t i) {
    return scene.culprit_is_first && node.actors[i].rank == scene.culprit;
  };
  std::stable_partition(node.ended.begin(), node.ended.end(), is_first);
}

std::vector<int> ChooseSizes(size_t at_least, Dice& dice) {
  const int most = dice.Chance(2) ? kMaxManyWorkers : kMaxWorkers;
  std::vector<int> sizes;
  size_t total = 0;
  const int nodes = 1 + dice.Below(kMaxNodes);
  for (int i = 0; i < nodes || total < at_least; ++i) {
    sizes.push_back(1 + dice.Below(most));
    total += static_cast<size_t>(sizes.back());
  }
  return sizes;
}

void Divide(const std::vector<Actor>& actors, const std::vector<int>& sizes, Scene& scene,
            Dice& dice) {
  auto next = actors.begin();
  for (int size : sizes) {
    SceneNode node{.first_rank = static_cast<int>(next - actors.begin())};
    node.actors.assign(next, next + size);
    next += size;
    for (const Actor& actor : node.actors) {
      node.workers.push_back(MakeEvidence(actor, dice));
      node.workers.back().local_rank = actor.rank - node.first_rank;
    }
    ChooseOrder(node, scene, dice);
    scene.nodes.push_back(std::move(node));
  }
}

std::vector<Actor> ActorsOf(const std::vector<int>& sizes) {
  std::vector<Actor> actors;
  for (int size : sizes) {
    for (int i = 0; i < size; ++i) actors.push_back({.rank = static_cast<int>(actors.size())});
  }
  return actors;
}

// A machine or an agent fails, and no worker.
Scene MakeLoss(Dice& dice) {
  Scene scene{.name = "a node is silent", .loss = Loss::kSilence};
  if (dice.Chance(50)) scene = {.name = "an agent dies", .loss = Loss::kAgentsDeath};
  std::vector<int> sizes = ChooseSizes(1, dice);
  sizes.push_back(1 + dice.Below(kMaxWorkers));
  scene.lost_node = static_cast<size_t>(dice.Below(static_cast<int>(sizes.size())));
  std::vector<Actor> actors = ActorsOf(sizes);
  int lost_rank = 0;
  for (size_t i = 0; i < scene.lost_node; ++i) lost_rank += sizes[i];
  constexpr std::array kEnds = {kLosesPeer, kNamesCulprit, kStopped, kSucceedsLate, kRaisesLate};
  for (Actor& actor : actors) {
    actor.end = kEnds[static_cast<size_t>(dice.Below(static_cast<int>(kEnds.size())))];
    actor.named = lost_rank;
    actor.is_late = MustBeLate(actor.end) || dice.Chance(50);
  }
  Divide(actors, sizes, scene, dice);
  return scene;
}

}  // namespace

Scene MakeScene(Dice& dice) {
  const auto drawn = static_cast<size_t>(dice.Below(static_cast<int>(std::size(kFaults)) + 2));
  if (drawn >= std::size(kFaults)) return MakeLoss(dice);
  const Fault& fault = kFaults[drawn];
  const std::vector<int> sizes = ChooseSizes(1 + fault.some.size(), dice);
  std::vector<Actor> actors = ActorsOf(sizes);
  Scene scene{.name = fault.name, .culprit_is_first = fault.is_known_first};
  scene.culprit = CastRoles(actors, fault, dice);
  Divide(actors, sizes, scene, dice);
  return scene;
}

}  // namespace rankrun::sim

#include "agent/coordination/query_relay.h"

#include <algorithm>
#include <utility>

namespace rankrun::agent {

namespace {

Duration LimitOf(const Relay& relay) {
  if (!relay.limit_ms) return QueryRelay::kTimeout;
  return std::min<Duration>(std::chrono::milliseconds(*relay.limit_ms), QueryRelay::kMaxTimeout);
}

// An answer of a node without anything to say, such as {"groups":[]}, is shorter.
constexpr size_t kShortAnswerBytes = 32;

// Returns the bytes of one node's answer, if those of all `nodes` have `share` together.
size_t RoomOf(const Relay& request, size_t share, size_t nodes) {
  size_t room = share / nodes;
  const size_t short_answers = nodes * kShortAnswerBytes;
  if (request.long_answers && short_answers < share) {
    const size_t long_answers = std::clamp<size_t>(*request.long_answers, 1, nodes);
    room = std::max(room, (share - short_answers) / long_answers);
  }
  return std::min(room, Relay::kMaxBytes);
}

}  // namespace

QueryRelay::Messages QueryRelay::OnRelay(PeerId from, const Relay& relay, TimePoint now) {
  Messages out;
  if (!names_.contains(from) || relay.content.size() > Relay::kMaxBytes) return out;
  if (relay.kind == RelayKind::kRequest) OnRequest(from, relay, now, out);
  if (relay.kind == RelayKind::kAnswer) OnAnswer(from, relay, out);
  return out;
}

size_t QueryRelay::QueriesOf(PeerId asker, bool is_slow) const {
  return static_cast<size_t>(std::ranges::count_if(queries_, [&](const auto& entry) {
    return entry.second.asker == asker && entry.second.is_slow == is_slow;
  }));
}

void QueryRelay::OnRequest(PeerId from, const Relay& relay, TimePoint now, Messages& out) {
  const Duration limit = LimitOf(relay);
  const bool is_slow = limit > kTimeout;
  const size_t slow = QueriesOf(from, true);
  const size_t quick = QueriesOf(from, false);
  if (is_slow ? slow >= kMaxSlowQueriesOfNode : quick >= kMaxQueriesOfNode) {
    out.push_back({from, {.kind = RelayKind::kOver, .number = relay.number, .is_refused = true}});
    return;
  }
  const size_t share = kMaxQueryBytes / (slow + quick + 1);
  uint64_t number = ++last_number_;
  Query query{.asker = from,
              .asker_number = relay.number,
              .is_slow = is_slow,
              .room = RoomOf(relay, share, names_.size()),
              .left = share,
              .open = {},
              .missing = {},
              .deadline = now + limit};
  for (const auto& [peer, name] : names_) {
    if (peer == from) continue;
    query.open.insert(peer);
    out.push_back({peer,
                   {.kind = RelayKind::kRequest,
                    .number = number,
                    .content = relay.content,
                    .room = static_cast<uint32_t>(query.room)}});
  }
  queries_.emplace(number, std::move(query));
  EndIfComplete(number, out);
}

void QueryRelay::OnAnswer(PeerId from, const Relay& relay, Messages& out) {
  auto found = queries_.find(relay.number);
  if (found == queries_.end() || found->second.open.erase(from) == 0) return;
  Query& query = found->second;
  if (relay.content.size() > std::min(query.room, query.left)) {
    query.missing.push_back(names_.at(from));
  } else {
    query.left -= relay.content.size();
    out.push_back({query.asker,
                   {.kind = RelayKind::kAnswer,
                    .number = query.asker_number,
                    .content = relay.content,
                    .node = names_.at(from)}});
  }
  EndIfComplete(relay.number, out);
}

QueryRelay::Messages QueryRelay::Remove(PeerId peer) {
  Messages out;
  auto removed = names_.extract(peer);
  if (removed.empty()) return out;
  std::vector<uint64_t> numbers;
  for (auto& [number, query] : queries_) {
    if (query.open.erase(peer) > 0) query.missing.push_back(removed.mapped());
    numbers.push_back(number);
  }
  for (uint64_t number : numbers) {
    if (queries_.at(number).asker == peer) {
      queries_.erase(number);
    } else {
      EndIfComplete(number, out);
    }
  }
  return out;
}

QueryRelay::Messages QueryRelay::OnTick(TimePoint now) {
  Messages out;
  std::vector<uint64_t> late;
  for (auto& [number, query] : queries_) {
    if (query.deadline > now) continue;
    for (PeerId peer : std::exchange(query.open, {})) query.missing.push_back(names_.at(peer));
    late.push_back(number);
  }
  for (uint64_t number : late) EndIfComplete(number, out);
  return out;
}

std::optional<TimePoint> QueryRelay::deadline() const {
  std::optional<TimePoint> first;
  for (const auto& [number, query] : queries_) {
    first = std::min(first.value_or(query.deadline), query.deadline);
  }
  return first;
}

void QueryRelay::EndIfComplete(uint64_t number, Messages& out) {
  Query& query = queries_.at(number);
  if (!query.open.empty()) return;
  out.push_back({query.asker,
                 {.kind = RelayKind::kOver,
                  .number = query.asker_number,
                  .missing = std::move(query.missing)}});
  queries_.erase(number);
}

}  // namespace rankrun::agent

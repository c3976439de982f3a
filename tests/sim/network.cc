#include "tests/sim/network.h"

#include <algorithm>
#include <utility>

namespace rankrun::sim {

Duration Network::Delay() {
  bool is_late = stage_.dice.Chance(3) && !stage_.is_calm;
  return is_late ? stage_.dice.Between(5, 300)
                 : Duration(std::chrono::microseconds(100 + stage_.dice.Below(900)));
}

std::optional<TimePoint> Network::BlockedUntil(int from_host, int to_host) {
  auto found = blocked_.find({from_host, to_host});
  if (found == blocked_.end()) return std::nullopt;
  if (found->second <= stage_.time.now()) {
    blocked_.erase(found);
    return std::nullopt;
  }
  return found->second;
}

void Network::Block(int from_host, int to_host, Duration how_long) {
  TimePoint& until = blocked_[{from_host, to_host}];
  until = std::max(until, stage_.time.now() + how_long);
}

bool Network::IsUnreachable(int from_host, int to_host) {
  return BlockedUntil(from_host, to_host) || BlockedUntil(to_host, from_host) ||
         stage_.hosts[to_host].is_dead;
}

void Network::OpenPort(uint16_t port, int host, std::function<bool()> lives) {
  ports_[port] = {host, std::move(lives)};
}

void Network::DialPort(int from_host, uint16_t number,
                       std::function<void(agent::LivenessAnswer)> on_answer) {
  using agent::LivenessAnswer;
  const Port& port = ports_.at(number);
  const Host& host = stage_.hosts[port.host];
  if (IsUnreachable(from_host, port.host) || host.frozen_until > stage_.time.now()) {
    stage_.time.After(milliseconds(1'000), [=] { on_answer(LivenessAnswer::kNone); });
    return;
  }
  bool is_refused = (host.rejects.value_or(false) && from_host != port.host) || !port.lives();
  stage_.time.After(std::chrono::microseconds(200 + stage_.liveness_dice.Below(2'000)), [=] {
    on_answer(is_refused ? LivenessAnswer::kRefused : LivenessAnswer::kConnected);
  });
}

void Network::Dial(NetworkUser* user, int to_host) {
  int from_host = user->host();
  if (IsUnreachable(from_host, to_host)) {
    stage_.time.After(milliseconds(1'000), [=] { user->OnDialFailed("no answer"); });
    return;
  }
  stage_.time.After(Delay(), [this, user, to_host] {
    auto listener = listeners_.find(to_host);
    if (listener == listeners_.end() || listener->second == nullptr) {
      stage_.time.After(Delay(), [user] { user->OnDialFailed("connection refused"); });
      return;
    }
    NetworkUser* acceptor = listener->second;
    ConnectionId id = ++last_id_;
    Connection& connection = connections_[id];
    connection.ends[0] = {.user = user, .host = user->host(), .is_open = true};
    connection.ends[1] = {.user = acceptor, .host = to_host, .is_open = true};
    ids_of_[user].insert(id);
    ids_of_[acceptor].insert(id);
    acceptor->OnAccepted(id);
    stage_.time.After(Delay(), [=, this] {
      auto found = connections_.find(id);
      bool is_open = found != connections_.end() && found->second.ends[0].is_open;
      if (is_open) return user->OnConnected(id, acceptor);
      user->OnDialFailed("connection reset");
    });
  });
}

void Network::Push(Connection& connection, ConnectionId id, int to, std::optional<Bytes> bytes) {
  End& end = connection.ends[to];
  TimePoint due = stage_.time.now() + Delay();
  if (!end.to_it.empty()) due = std::max(due, end.to_it.back().due);
  end.to_it.push_back({due, std::move(bytes)});
  stage_.time.At(due, [this, id, to] { Pump(id, to); });
}

void Network::Send(ConnectionId id, const NetworkUser* from, Bytes bytes) {
  auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  for (int side : {0, 1}) {
    const End& end = connection.ends[side];
    if (end.user != from || !end.is_open) continue;
    if (!connection.is_cut) Push(connection, id, 1 - side, std::move(bytes));
    return;
  }
}

void Network::Pump(ConnectionId id, int to) {
  for (;;) {
    auto found = connections_.find(id);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    End& end = connection.ends[to];
    if (end.to_it.empty() || end.to_it.front().due > stage_.time.now()) return;
    if (auto until = BlockedUntil(connection.ends[1 - to].host, end.host)) {
      stage_.time.At(*until + Delay(), [this, id, to] { Pump(id, to); });
      return;
    }
    Packet packet = std::move(end.to_it.front());
    end.to_it.pop_front();
    if (stage_.hosts[end.host].is_dead) continue;
    if (!end.is_open) {
      if (end.is_reset) CloseEnd(id, 1 - to);
    } else if (!packet.bytes) {
      CloseEnd(id, to);
    } else {
      end.user->OnBytes(id, *packet.bytes);
    }
  }
}

void Network::CloseEnd(ConnectionId id, int side) {
  auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.ends[side].is_open) return;
  found->second.ends[side].is_open = false;
  found->second.ends[side].user->OnClosed(id);
  EraseIfOver(id);
}

void Network::EraseIfOver(ConnectionId id) {
  auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Connection& connection = found->second;
  if (connection.ends[0].is_open || connection.ends[1].is_open) return;
  for (const End& end : connection.ends) ids_of_[end.user].erase(id);
  connections_.erase(found);
}

void Network::Close(ConnectionId id, const NetworkUser* from) {
  auto found = connections_.find(id);
  if (found == connections_.end()) return;
  for (int side : {0, 1}) {
    End& end = found->second.ends[side];
    if (end.user != from || !end.is_open) continue;
    end.is_open = false;
    end.is_reset = false;  // packets under way are still taken
    if (!found->second.is_cut) Push(found->second, id, 1 - side, std::nullopt);
  }
  EraseIfOver(id);
}

void Network::CloseAllOf(NetworkUser* user) {
  std::erase_if(listeners_, [user](const auto& entry) { return entry.second == user; });
  std::set<ConnectionId> ids = ids_of_[user];
  for (ConnectionId id : ids) {
    Close(id, user);
    auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    for (End& end : found->second.ends) end.is_reset |= end.user == user;
  }
}

void Network::ForgetAllOf(NetworkUser* user) {
  std::erase_if(listeners_, [user](const auto& entry) { return entry.second == user; });
  std::set<ConnectionId> ids = ids_of_[user];
  for (ConnectionId id : ids) {
    for (End& end : connections_.at(id).ends) {
      if (end.user == user) end.is_open = false;
    }
    EraseIfOver(id);
  }
}

void Network::Break(ConnectionId id, Duration most) {
  Connection& connection = connections_.at(id);
  bool is_within_host = connection.ends[0].host == connection.ends[1].host;
  if (connection.is_cut || is_within_host) return;
  connection.is_cut = true;
  auto most_ms = static_cast<int>(std::chrono::duration_cast<milliseconds>(most).count());
  for (int side : {0, 1}) {
    connection.ends[side].to_it.clear();
    stage_.time.After(stage_.dice.Between(0, most_ms), [this, id, side] { CloseEnd(id, side); });
  }
}

void Network::BreakOne(Duration most) {
  if (connections_.empty()) return;
  auto chosen = connections_.begin();
  std::advance(chosen, stage_.dice.Below(static_cast<int>(connections_.size())));
  Break(chosen->first, most);
}

void Network::BreakAll(Duration most) {
  for (const auto& [id, connection] : connections_) Break(id, most);
}

}  // namespace rankrun::sim

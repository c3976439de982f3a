#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "agent/coordination/control_message.h"
#include "agent/coordination/liveness_watch.h"
#include "tests/sim/stage.h"

namespace rankrun::sim {

using Bytes = std::variant<agent::MemberMessage, agent::CoordinatorMessage>;
using ConnectionId = uint64_t;

// A process with connections; receives its network events.
class NetworkUser {
 public:
  virtual ~NetworkUser() = default;
  virtual int host() const = 0;
  virtual int world() const = 0;  // see Checker
  virtual void OnConnected(ConnectionId id, NetworkUser* peer) = 0;
  virtual void OnDialFailed(const std::string& why) = 0;
  virtual void OnAccepted(ConnectionId id) = 0;
  virtual void OnBytes(ConnectionId id, const Bytes& bytes) = 0;
  virtual void OnClosed(ConnectionId id) = 0;
};

// Simulates TCP as processes see it: bytes arrive in order, late or never; the two
// ends notice a break at different times; a partition may affect one direction only.
class Network {
 public:
  explicit Network(Stage& stage) : stage_(stage) {}

  void Listen(int host, NetworkUser* user) { listeners_[host] = user; }
  void Dial(NetworkUser* user, int to_host);
  // Opens a liveness port. `lives` returns whether a process that holds it open exists.
  void OpenPort(uint16_t port, int host, std::function<bool()> lives);
  // Calls `on_answer` once, later.
  void DialPort(int from_host, uint16_t port, std::function<void(agent::LivenessAnswer)> on_answer);
  void Send(ConnectionId id, const NetworkUser* from, Bytes bytes);
  void Close(ConnectionId id, const NetworkUser* from);

  void CloseAllOf(NetworkUser* user);   // the process of `user` has ended
  void ForgetAllOf(NetworkUser* user);  // the machine of `user` is lost: peers are not notified
  void Block(int from_host, int to_host, Duration how_long);
  void BreakOne(Duration most);  // one connection; each end notices within `most`
  void BreakAll(Duration most);

 private:
  struct Port {
    int host = 0;
    std::function<bool()> lives;
  };
  struct Packet {
    TimePoint due;
    std::optional<Bytes> bytes;  // nullopt: end of stream
  };
  struct End {
    NetworkUser* user = nullptr;
    int host = 0;
    bool is_open = false;
    bool is_reset = true;  // once closed, answers later packets with a reset
    std::deque<Packet> to_it = {};
  };
  struct Connection {
    End ends[2];
    bool is_cut = false;
  };

  void Push(Connection& connection, ConnectionId id, int to, std::optional<Bytes> bytes);
  void Pump(ConnectionId id, int to);
  void Break(ConnectionId id, Duration most);
  void CloseEnd(ConnectionId id, int side);
  void EraseIfOver(ConnectionId id);
  bool IsUnreachable(int from_host, int to_host);
  std::optional<TimePoint> BlockedUntil(int from_host, int to_host);
  Duration Delay();

  Stage& stage_;
  std::map<ConnectionId, Connection> connections_;
  std::map<const NetworkUser*, std::set<ConnectionId>> ids_of_;
  std::map<int, NetworkUser*> listeners_;
  std::map<uint16_t, Port> ports_;
  std::map<std::pair<int, int>, TimePoint> blocked_;
  ConnectionId last_id_ = 0;
};

}  // namespace rankrun::sim

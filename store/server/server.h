#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/net/peer_user.h"
#include "base/result.h"
#include "base/uv/uv_timer.h"
#include "base/uv/uv_wakeup.h"
#include "store/engine/engine.h"
#include "store/server/refusals.h"
#include "store/server/server_options.h"
#include "store/server/server_stats.h"
#include "store/server/stalls.h"

namespace rankrun::store {

// A store server: TCP connections that speak PyTorch's protocol to one Engine.
// It closes a client that violates the protocol or a limit, with a log line;
// the others continue. Its statistics are at kStatsKey, for CHECK and GET.
// Thread: loop.  Lifetime: shorter than the loop.
class Server {
 public:
  // Errors: those of ListenOnOnePort or ListenOnSocket; kInvalid for limits that cannot work.
  static Result<std::unique_ptr<Server>> Listen(Loop& loop, ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  uint16_t port() const { return listeners_.front()->address().port(); }
  size_t connection_count() const { return connections_.size(); }
  size_t key_count() const { return engine_.key_count(); }
  ServerStats Stats() const;
  // A name for which clients wait, and the port of each waiting client.
  struct Waited {
    std::string name;
    std::vector<uint16_t> ports;
  };
  // Requests that change a key or a queue. An ADD of 0 is how clients read a number.
  uint64_t changes() const { return changes_; }
  // Returns at most `max` waits of clients.
  std::vector<Waited> ListWaits(size_t max) const;

  // Closes all connections and forgets all keys: a fresh store at the same
  // addresses. Clients see an end of stream, as when the server ends, never a
  // reset. Connections that the loop has not accepted yet stay and are served
  // by the fresh store.
  void Reset();

  void LimitMemory(size_t bytes);  // replaces both limits, of the data and of the traffic
  void NameRefusal(const SocketAddress& client, const std::string& why);  // answers on_refusal

  void AdmitLater();  // holds back all clients, whose requests wait until the next AdmitOnly
  // Accepts clients from these ranges only (empty: from everywhere) and closes
  // the others. Workers of this host are checked, too.
  void AdmitOnly(std::vector<AddressRange> ranges);
  // Answers ask_whose; `why` is empty, or the reason to refuse the client.
  void OnVouched(uint64_t client, const std::string& why);

 private:
  struct Connection;
  struct UserCheck;
  Server(Loop& loop, ServerOptions options);

  void OnAccept(std::unique_ptr<Stream> stream);
  void OnData(Connection& connection, std::string_view bytes);
  void ProcessPendingInput(Connection& connection);
  void OnNextTurn();

  UserCheck CheckUser(const Stream& stream);
  bool MayComeFrom(const SocketAddress& peer) const;
  bool EnterStrangers(Connection& connection);
  void OnStrangerDeadline();
  bool IsClient(Connection& connection, std::string_view bytes);
  void AskWhose(Connection& connection);
  void EndQuestion(Connection& connection);
  void Identify(Connection& connection);
  void HandOverControlConnections();

  void HandleInput(Connection& connection, std::string_view input);
  std::string_view ApplyRequests(Connection& connection, std::string_view input);
  Result<bool> ApplyNext(Connection& connection, std::string_view& input);
  bool AnswerStatsRequest(const Request& request);
  const std::string& StatsText();
  void Deliver(const Connection& current, const Outgoing& outgoing);
  Connection& Find(ConnectionId id);
  void SendReplies(Connection& connection);
  bool IsCongested(const Connection& connection) const;
  void Account(Connection& connection);
  void Recount(Connection& connection);
  void CloseLargest();
  void WatchForStall(Connection& connection, size_t bytes);
  void EndStall(Connection& connection);
  void OnStallDeadline();

  void Refuse(Connection& connection, Ending ending, std::string_view why);
  void RefuseRequest(Connection& connection, std::string_view why);
  bool Stop(Connection& connection);
  void End(Connection& connection);
  void DropEnded();
  void Release(Connection& connection);
  void CloseAll();

  bool MayWarn();
  void Warn(const std::string& message);
  void OnWarnWindowOver();

  Loop& loop_;
  ServerOptions options_;
  const TimePoint started_;
  Engine engine_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  Admission admission_;
  bool is_admission_postponed_ = false;
  PeerUsers peer_users_;
  Unidentified strangers_;
  Timer stranger_deadline_;
  std::unordered_map<ConnectionId, std::unique_ptr<Connection>> connections_;
  ConnectionId next_id_ = 1;
  size_t traffic_bytes_ = 0;           // sum of all connections' traffic_bytes
  std::vector<Outgoing> replies_;      // replies to one request; a member to reuse its memory
  std::string outbox_;                 // replies to the connection being handled
  bool turn_is_over_ = false;          // for the connection being handled
  std::vector<ConnectionId> woken_;    // other connections with unsent replies
  std::vector<ConnectionId> waiting_;  // connections with requests for their next turn
  Wakeup next_turn_;  // not a timer, which would fire again before the loop polls other connections
  std::vector<ConnectionId> control_connections_;  // connections that drop_ended_ will hand over
  std::vector<ConnectionId> ended_;                // connections that drop_ended_ will drop
  std::vector<ConnectionId> refused_;              // connections that drop_refused_ will end
  Timer drop_refused_;
  Refusals refusals_;
  Timer drop_ended_;  // a connection must not be destroyed in its own callback
  Stalls stalls_;
  Timer stall_deadline_;
  RequestCounts requests_{};
  uint64_t changes_ = 0;
  EndingCounts endings_{};
  std::string stats_text_;
  TimePoint stats_fresh_until_{};
  Timer warn_window_;
  size_t warnings_ = 0;  // since warn_window_ started
};

}  // namespace rankrun::store

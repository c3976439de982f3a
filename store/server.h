#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/uv_timer.h"
#include "base/uv_wakeup.h"
#include "store/admission.h"
#include "store/engine.h"
#include "store/one_port.h"
#include "store/server_stats.h"
#include "store/stalls.h"
#include "store/wire.h"

namespace rankrun::store {

// The largest key, value and reply. Full of replies, an outbox holds less than
// twice this, and libuv counts its bytes in an unsigned int.
constexpr int kLargestPieceG = 1;
constexpr size_t kLargestPiece = size_t{kLargestPieceG} << 30;

struct ServerOptions {
  std::vector<BindAddress> addresses;  // all with one port; see ListenOnOnePort
  WireLimits limits;
  AdmissionLimits admission;
  // What all keys, values and waits may take.
  size_t largest_store_bytes = size_t{4} << 30;
  // What requests that are half here and replies that are not sent yet may
  // take, all connections together.
  size_t largest_traffic_bytes = size_t{4} << 30;
  // From here on, a client that does not fetch its replies is not read.
  size_t unsent_bytes = size_t{1} << 20;
  // How long a request may stay half sent without Stalls::kProgressBytes more
  // of it. A connection between two requests may be silent for ever.
  std::chrono::milliseconds half_request_timeout{60'000};
  // Takes over connections that begin with kControlPreamble, paused, with the
  // bytes that were read from it. It is called between two events of the loop
  // and may not end the server. If there is none, those are refused as all that
  // is no request; if there is, they may come from everywhere.
  using Control = std::function<void(std::unique_ptr<Stream>, std::string_view first_bytes)>;
  Control control;
};

// A store server: TCP connections that speak PyTorch's protocol to one Engine.
// A client that breaks the protocol or a limit is closed, with a log line; all
// others go on. What it knows about itself is at kStatsKey, for CHECK and GET.
// Thread: loop.  Lifetime: shorter than the loop.
class Server {
 public:
  // Errors: those of ListenOnOnePort; kInvalid for limits that cannot work.
  static Result<std::unique_ptr<Server>> Listen(Loop& loop, ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  uint16_t port() const { return listeners_.front()->address().port(); }
  size_t connection_count() const { return connections_.size(); }
  size_t key_count() const { return engine_.key_count(); }
  ServerStats Stats() const;

  // Closes all connections and forgets all keys: a fresh store at the same
  // addresses. Clients see an end of stream, as they do when the server ends,
  // never a reset. A connection that the kernel has taken and the loop has not
  // is kept, and served by the fresh store.
  void Reset();

  // From now on, takes clients from these ranges only (empty: from everywhere),
  // and closes those from elsewhere. Workers of this host count as others do.
  void AdmitOnly(std::vector<AddressRange> ranges);

 private:
  struct Connection;

  Server(Loop& loop, ServerOptions options);

  void OnAccept(std::unique_ptr<Stream> stream);
  void OnData(Connection& connection, std::string_view bytes);
  void GoOn(Connection& connection);
  void OnNextTurn();

  bool IsClient(Connection& connection, std::string_view bytes);
  void HandOverGuests();

  void HandleInput(Connection& connection, std::string_view input);
  std::string_view ApplyRequests(Connection& connection, std::string_view input);
  Result<bool> ApplyNext(Connection& connection, std::string_view& input);
  bool AnswerAboutItself(const Request& request);
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
  void End(Connection& connection);
  void DropEnded();
  void Release(Connection& connection);
  void CloseAll();

  void Warn(const std::string& message);
  void OnWarnWindowOver();

  Loop& loop_;
  const ServerOptions options_;
  const TimePoint started_;
  Engine engine_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  Admission admission_;
  std::unordered_map<ConnectionId, std::unique_ptr<Connection>> connections_;
  ConnectionId next_id_ = 1;
  size_t traffic_bytes_ = 0;           // the sum of the connections' traffic_bytes
  std::vector<Outgoing> replies_;      // of one request; kept for its memory
  std::string outbox_;                 // to the connection that is being handled
  bool turn_is_over_ = false;          // of the connection that is being handled
  std::vector<ConnectionId> woken_;    // others with unsent replies
  std::vector<ConnectionId> waiting_;  // with requests for their next turn
  Wakeup next_turn_;                   // a timer would fire again before the loop looks at others
  std::vector<ConnectionId> guests_;   // to be handed over by drop_ended_
  std::vector<ConnectionId> ended_;    // to be dropped by drop_ended_
  Timer drop_ended_;                   // a connection may not die inside its own callback
  Stalls stalls_;
  Timer stall_deadline_;
  RequestCounts requests_{};
  EndingCounts endings_{};
  std::string stats_text_;
  TimePoint stats_fresh_until_{};
  Timer warn_window_;
  size_t warnings_ = 0;  // since warn_window_ was started
};

}  // namespace rankrun::store

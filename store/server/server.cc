#include "store/server/server.h"

#include <variant>

#include "base/check.h"
#include "base/format.h"
#include "base/uv/uv_loop.h"
#include "store/server/server_connection.h"

namespace rankrun::store {
namespace {

using std::chrono::seconds;

// Largest buffer that is kept for the next reply, in bytes.
constexpr size_t kMaxKeptOutbox = size_t{256} << 10;

// Requests of one connection that are handled before others get a turn. They
// take less than a millisecond unless they are large.
constexpr size_t kRequestsPerTurn = 512;

// Unsent bytes at which a client gets no further notice, and is closed, because it
// does not read.
constexpr size_t kUnsentNotices = size_t{64} << 20;

Result<void> CheckLimits(const ServerOptions& options) {
  const WireLimits& limits = options.limits;
  if (options.unsent_bytes == 0 || options.unsent_bytes > kMaxPiece) {
    return Error{ErrorCode::kInvalid, "unsent bytes must be from 1 byte to 1 GiB"};
  }
  if (limits.key_bytes > kMaxPiece || limits.value_bytes > kMaxPiece) {
    return Error{ErrorCode::kInvalid, "the largest key and value must be at most 1 GiB"};
  }
  size_t compare_set = limits.key_bytes + 2 * limits.value_bytes;
  if (limits.request_bytes < compare_set) {
    return Error{ErrorCode::kInvalid, "the limit of a request is " +
                                          std::to_string(limits.request_bytes) +
                                          " bytes: want at least " + std::to_string(compare_set) +
                                          ", for a key and two values"};
  }
  if (options.half_request_timeout <= options.half_request_timeout.zero()) {
    return Error{ErrorCode::kInvalid,
                 "the time-out of a half-received request must be more than 0"};
  }
  return {};
}

template <typename... Kinds>
bool IsOneOf(const Request& request) {
  return (std::holds_alternative<Kinds>(request) || ...);
}

bool ChangesSomething(const Request& request) {
  if (const auto* add = std::get_if<AddRequest>(&request)) return add->delta != 0;
  return IsOneOf<SetRequest, CompareSetRequest, DeleteKeyRequest, AppendRequest, MultiSetRequest,
                 QueuePushRequest, QueuePopRequest>(request);
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Listen(Loop& loop, ServerOptions options) {
  loop.AssertOnLoop();
  Fd socket(std::exchange(options.listen_fd, Fd::kNone));
  if (auto possible = CheckLimits(options); !possible) {
    return std::move(possible).error().In("start a store server");
  }
  std::unique_ptr<Server> server(new Server(loop, std::move(options)));
  auto on_accept = [self = server.get()](std::unique_ptr<Stream> stream) {
    self->OnAccept(std::move(stream));
  };
  auto listeners = socket ? ListenOnSocket(loop, std::move(socket), on_accept)
                          : ListenOnOnePort(loop, server->options_.addresses, on_accept);
  if (!listeners) return std::move(listeners).error().In("start a store server");
  server->listeners_ = std::move(*listeners);
  return server;
}

Server::Server(Loop& loop, ServerOptions options)
    : loop_(loop),
      options_(std::move(options)),
      started_(MonotonicClock().Now()),
      engine_(options_.largest_store_bytes, kMaxPiece),
      admission_(options_.admission),
      strangers_(WithinOpenFiles(options_.strangers)),
      stranger_deadline_(loop, [this] { OnStrangerDeadline(); }),
      next_turn_(loop, [this] { OnNextTurn(); }),
      drop_refused_(loop,
                    [this] {
                      std::ranges::move(std::exchange(refused_, {}), std::back_inserter(ended_));
                      drop_ended_.Start(seconds(0));
                    }),
      drop_ended_(loop, [this] { DropEnded(); }),
      stalls_(options_.half_request_timeout),
      stall_deadline_(loop, [this] { OnStallDeadline(); }),
      warn_window_(loop, [this] { OnWarnWindowOver(); }) {}

Server::~Server() { CloseAll(); }

void Server::Reset() {
  loop_.AssertOnLoop();
  HandOverControlConnections();
  CloseAll();
  engine_.Clear();
}

void Server::CloseAll() {
  for (auto& [id, connection] : connections_) Release(*connection);
  connections_.clear();
  waiting_.clear();
  control_connections_.clear();
  ended_.clear();
  refused_.clear();
  refusals_.Clear();
  stalls_.Clear();
  traffic_bytes_ = 0;
  stats_fresh_until_ = {};
}

void Server::OnAccept(std::unique_ptr<Stream> stream) {
  bool is_checked_later = options_.control || is_admission_postponed_;
  auto entered =
      is_checked_later ? admission_.EnterUnknown(stream->peer()) : admission_.Enter(stream->peer());
  UserCheck user = entered ? CheckUser(*stream) : UserCheck{};
  if (!user.problem.empty() && !options_.control) {
    admission_.Leave(stream->peer(), /*silent=*/true);
    entered = Error{ErrorCode::kInvalid, user.problem};
  }
  if (!entered) {
    endings_[static_cast<size_t>(Ending::kRefused)] += 1;
    Warn("store: refused a connection from " + stream->peer().ToString() + ": " +
         entered.error().message);
    return;
  }
  ConnectionId id = next_id_++;
  auto owned = std::make_unique<Connection>(id, std::move(stream), options_.limits);
  Connection* connection = owned.get();
  connection->user_problem = std::move(user.problem);
  connection->is_remote = user.is_remote;
  connections_.emplace(id, std::move(owned));
  bool is_stranger = options_.control &&
                     !(connection->user_problem.empty() && MayComeFrom(connection->stream->peer()));
  if (is_stranger && !EnterStrangers(*connection)) return;
  connection->stream->Start({
      .needed_by_on_data = connection,
      .on_data =
          [this, connection](std::span<const char> bytes) {
            OnData(*connection, {bytes.data(), bytes.size()});
          },
      .on_end = [this, connection](const std::optional<Error>&) { End(*connection); },
      .on_drained = [this, connection] { ProcessPendingInput(*connection); },
  });
  AskWhose(*connection);
}

void Server::OnData(Connection& connection, std::string_view bytes) {
  if (connection.ended) return;
  if (!connection.silent) return HandleInput(connection, bytes);
  bool is_checked_now = options_.control || is_admission_postponed_ || connection.is_asked;
  if (is_checked_now && !IsClient(connection, bytes)) return;
  Identify(connection);
  std::string held = std::exchange(connection.unhandled, {});
  HandleInput(connection, held.empty() ? bytes : held);
}

// Handles the requests that were left over, now that there is room or time for
// them.
void Server::ProcessPendingInput(Connection& connection) {
  if (connection.ended) return;
  HandleInput(connection, std::exchange(connection.unhandled, {}));
  if (connection.ended || !connection.unhandled.empty() || IsCongested(connection)) return;
  connection.stream->ResumeReading();
}

void Server::OnNextTurn() {
  for (ConnectionId id : std::exchange(waiting_, {})) {
    auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    found->second->waiting = false;
    ProcessPendingInput(*found->second);
  }
}

// Handles the requests of one turn. The rest of `input`, and later input, waits
// until replies have been sent or the other connections have had a turn.
void Server::HandleInput(Connection& connection, std::string_view input) {
  size_t input_bytes = input.size();
  input = ApplyRequests(connection, input);
  SendReplies(connection);
  if (connection.ended) return;
  bool is_congested = IsCongested(connection);
  if (turn_is_over_ || is_congested || !input.empty()) {
    connection.unhandled = input;
    connection.stream->PauseReading();
    EndStall(connection);  // it cannot send the rest while we do not read
    if (!is_congested && !connection.waiting) {
      connection.waiting = true;
      waiting_.push_back(connection.id);
      next_turn_.Wake();
    }
  } else if (connection.decoder.is_within_request()) {
    WatchForStall(connection, input_bytes);
  }
  Account(connection);
}

// Applies requests until the outbox of `connection` is full or the turn is over
// for another reason. Returns the remaining input.
std::string_view Server::ApplyRequests(Connection& connection, std::string_view input) {
  turn_is_over_ = false;
  for (size_t count = 0; !turn_is_over_ && outbox_.size() < options_.unsent_bytes; ++count) {
    if (count == kRequestsPerTurn) turn_is_over_ = true;
    auto applied = ApplyNext(connection, input);
    if (!applied) {
      const ErrorCode code = applied.error().code;
      const bool is_limit = code == ErrorCode::kSystem || code == ErrorCode::kExhausted;
      if (is_limit) {
        RefuseRequest(connection, applied.error().message);
      } else {
        Refuse(connection, Ending::kProtocol, applied.error().message);
      }
      return {};
    }
    if (!*applied) break;
  }
  return input;
}

// Returns whether there was a complete request.
Result<bool> Server::ApplyNext(Connection& connection, std::string_view& input) {
  auto request = connection.decoder.Next(input);
  if (!request) return std::move(request).error();
  if (!*request) return false;
  EndStall(connection);
  requests_[(*request)->index()] += 1;
  if (ChangesSomething(**request)) changes_ += 1;
  // A client that cannot cancel a WAIT abandons it by sending another request. The
  // client would take a late reply to the WAIT for the reply to that request.
  if (!connection.decoder.cancels_waits()) engine_.CancelWaits(connection.id);
  if (AnswerStatsRequest(**request)) return true;
  if (std::holds_alternative<ListKeysRequest>(**request)) turn_is_over_ = true;
  auto applied = engine_.Apply(connection.id, std::move(**request), replies_);
  if (!applied) return std::move(applied).error().In(Describe(**request));
  (*request)->emplace<PingRequest>();  // frees the rest of the request
  for (const Outgoing& outgoing : replies_) Deliver(connection, outgoing);
  replies_.clear();
  return true;
}

void Server::Deliver(const Connection& current, const Outgoing& outgoing) {
  if (outgoing.to == current.id && !std::holds_alternative<NoticeReply>(outgoing.reply)) {
    AppendReply(outbox_, outgoing.reply);
    return;
  }
  Connection& to = Find(outgoing.to);
  if (to.ended) return;
  std::string& outbox = to.id == current.id ? outbox_ : to.outbox;
  if (std::holds_alternative<NoticeReply>(outgoing.reply)) {
    turn_is_over_ = true;  // a small request may cause many large notices
    if (outbox.size() + to.stream->queued_bytes() >= kUnsentNotices) {
      Refuse(to, Ending::kLimit, "it does not fetch the notices of its watches");
      return;
    }
  }
  AppendReply(outbox, outgoing.reply);
  if (to.id != current.id) woken_.push_back(to.id);
}

// Woken connections still exist, because the engine forgets a connection that
// ends.
Server::Connection& Server::Find(ConnectionId id) {
  auto found = connections_.find(id);
  RANKRUN_CHECK(found != connections_.end(), "a reply to a connection that is gone");
  return *found->second;
}

void Server::SendReplies(Connection& connection) {
  connection.stream->Write(outbox_);
  if (outbox_.capacity() > kMaxKeptOutbox) outbox_ = {};
  for (ConnectionId id : woken_) {
    // If a connection was woken more than once, its outbox is empty by now, and
    // Write does nothing.
    Connection& woken = Find(id);
    woken.stream->Write(std::exchange(woken.outbox, {}));
    Account(woken);
  }
  woken_.clear();
}

bool Server::IsCongested(const Connection& connection) const {
  return connection.stream->queued_bytes() >= options_.unsent_bytes;
}

// Updates the traffic of `connection`. If all connections together exceed the
// limit, closes the one with the most traffic.
void Server::Account(Connection& connection) {
  if (connection.ended) return;
  size_t before = connection.traffic_bytes;
  Recount(connection);
  if (connection.traffic_bytes <= before || traffic_bytes_ <= options_.largest_traffic_bytes) {
    return;
  }
  CloseLargest();
}

void Server::Recount(Connection& connection) {
  size_t now_bytes = connection.decoder.held_bytes() + connection.unhandled.size() +
                     connection.stream->queued_bytes();
  traffic_bytes_ = traffic_bytes_ - connection.traffic_bytes + now_bytes;
  connection.traffic_bytes = now_bytes;
}

void Server::CloseLargest() {
  Connection* largest = nullptr;
  for (auto& [id, connection] : connections_) {
    if (connection->ended) continue;
    Recount(*connection);
    if (largest == nullptr || connection->traffic_bytes > largest->traffic_bytes) {
      largest = connection.get();
    }
  }
  if (largest == nullptr || traffic_bytes_ <= options_.largest_traffic_bytes) return;
  const std::string request = largest->decoder.half_request();
  RefuseRequest(*largest, (request.empty() ? "" : request + ": ") +
                              "requests and replies of all connections take " +
                              std::to_string(traffic_bytes_) + " bytes, over the limit of " +
                              std::to_string(options_.largest_traffic_bytes) + ", and its own " +
                              std::to_string(largest->traffic_bytes) + " are the most");
}

void Server::WatchForStall(Connection& connection, size_t bytes) {
  connection.half = true;
  TimePoint now = MonotonicClock().Now();
  bool is_first = !stalls_.NextDeadline();
  stalls_.Progress(connection.id, bytes, now);
  if (is_first) stall_deadline_.Start(options_.half_request_timeout);
}

void Server::EndStall(Connection& connection) {
  if (!connection.half) return;
  connection.half = false;
  stalls_.Forget(connection.id);
}

void Server::OnStallDeadline() {
  TimePoint now = MonotonicClock().Now();
  for (ConnectionId id : stalls_.TakeStalled(now)) {
    Connection& connection = Find(id);
    connection.half = false;
    Refuse(connection, Ending::kStalled,
           "less than " + std::to_string(Stalls::kProgressBytes) +
               " bytes of an incomplete request arrived within " +
               FormatSeconds(options_.half_request_timeout));
  }
  if (auto next = stalls_.NextDeadline()) stall_deadline_.Start(*next - now);
}

void Server::Refuse(Connection& connection, Ending ending, std::string_view why) {
  endings_[static_cast<size_t>(ending)] += 1;
  Warn("store: closed the connection from " + connection.stream->peer().ToString() + ": " +
       std::string(why));
  End(connection);
}

void Server::End(Connection& connection) {
  if (!Stop(connection)) return;
  ended_.push_back(connection.id);
  drop_ended_.Start(seconds(0));
}

// Takes nothing more from a connection. Returns false if that was so before.
bool Server::Stop(Connection& connection) {
  if (connection.ended) return false;
  connection.ended = true;
  connection.stream->PauseReading();
  EndStall(connection);
  traffic_bytes_ -= std::exchange(connection.traffic_bytes, 0);
  engine_.Disconnect(connection.id);
  return true;
}

void Server::DropEnded() {
  HandOverControlConnections();
  for (ConnectionId id : std::exchange(ended_, {})) {
    Release(Find(id));
    connections_.erase(id);
  }
}

// Cleans up before a connection is dropped.
void Server::Release(Connection& connection) {
  EndQuestion(connection);
  strangers_.Leave(connection.id);
  admission_.Leave(connection.stream->peer(), connection.silent);
  connection.stream->DiscardInput();
}

}  // namespace rankrun::store

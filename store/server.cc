#include "store/server.h"

#include "base/check.h"
#include "base/log.h"
#include "base/uv_loop.h"
#include "base/uv_stream.h"

namespace rankrun::store {
namespace {

using std::chrono::seconds;

constexpr size_t kWarningsPerSecond = 5;

// The largest reply. Full of replies, an outbox holds less than twice this, and
// libuv counts its bytes in an unsigned int.
constexpr size_t kLargestPiece = size_t{1} << 30;

}  // namespace

struct Server::Connection {
  const ConnectionId id;
  const std::unique_ptr<Stream> stream;
  RequestDecoder decoder;
  std::string unhandled = {};  // requests that wait until replies are sent
  std::string outbox = {};     // replies that are to be written in one go
  size_t traffic_bytes = 0;    // as of the last AccountFor
  bool ended = false;          // nothing is read or answered any more
};

Result<std::unique_ptr<Server>> Server::Listen(Loop& loop, ServerOptions options) {
  loop.AssertOnLoop();
  if (options.unsent_bytes == 0 || options.unsent_bytes > kLargestPiece ||
      options.limits.value_bytes > kLargestPiece) {
    return Error{ErrorCode::kInvalid,
                 "start a store server: unsent bytes and the largest value must be at most 1 GiB"};
  }
  std::unique_ptr<Server> server(new Server(loop, std::move(options)));
  Server* self = server.get();
  auto listeners = ListenOnOnePort(
      loop, server->options_.addresses,
      [self](std::unique_ptr<Stream> stream) { self->OnAccept(std::move(stream)); });
  if (!listeners) return std::move(listeners).error().In("start a store server");
  server->listeners_ = std::move(*listeners);
  return server;
}

Server::Server(Loop& loop, ServerOptions options)
    : loop_(loop),
      options_(std::move(options)),
      engine_(options_.largest_store_bytes, kLargestPiece),
      drop_ended_(loop, [this] { DropEnded(); }),
      warn_window_(loop, [this] { OnWarnWindowOver(); }) {}

Server::~Server() = default;

void Server::Reset() {
  loop_.AssertOnLoop();
  connections_.clear();
  ended_.clear();
  traffic_bytes_ = 0;
  engine_.Clear();
}

void Server::OnAccept(std::unique_ptr<Stream> stream) {
  if (connections_.size() >= options_.largest_connections) {
    Warn("store: refused a connection from " + stream->peer().ToString() + ": there are " +
         std::to_string(connections_.size()) + " already");
    return;
  }
  ConnectionId id = next_id_++;
  std::unique_ptr<Connection> owned(
      new Connection{id, std::move(stream), RequestDecoder(options_.limits)});
  Connection* connection = owned.get();
  connections_.emplace(id, std::move(owned));
  connection->stream->Start({
      .on_data =
          [this, connection](std::span<const char> bytes) {
            OnData(*connection, {bytes.data(), bytes.size()});
          },
      .on_end = [this, connection](const std::optional<Error>&) { End(*connection); },
      .on_drained = [this, connection] { OnDrained(*connection); },
  });
}

void Server::OnData(Connection& connection, std::string_view bytes) {
  if (!connection.ended) HandleInput(connection, bytes);
}

void Server::OnDrained(Connection& connection) {
  if (connection.ended) return;
  HandleInput(connection, std::exchange(connection.unhandled, {}));
  if (!connection.ended && !IsCongested(connection)) connection.stream->ResumeReading();
}

// Handles requests until the input is used up, or so much is unsent that the
// rest of it must wait; then nothing more is read.
void Server::HandleInput(Connection& connection, std::string_view input) {
  do {
    input = ApplyRequests(connection, input);
    SendReplies(connection);
  } while (!connection.ended && !input.empty() && !IsCongested(connection));
  if (connection.ended) return;
  connection.unhandled = input;
  if (IsCongested(connection)) connection.stream->PauseReading();
  if (!AccountFor(connection)) {
    Refuse(connection, "requests and replies under way take " + std::to_string(traffic_bytes_) +
                           " bytes, over the limit of " +
                           std::to_string(options_.largest_traffic_bytes));
  }
}

// Collects the replies in outboxes. Stops early, with the input that is left,
// when the one of `connection` is full.
std::string_view Server::ApplyRequests(Connection& connection, std::string_view input) {
  while (connection.outbox.size() < options_.unsent_bytes) {
    auto applied = ApplyNext(connection, input);
    if (!applied) {
      Refuse(connection, applied.error().message);
      return {};
    }
    if (!*applied) break;
  }
  return input;
}

// Whether there was a complete request.
Result<bool> Server::ApplyNext(Connection& connection, std::string_view& input) {
  auto request = connection.decoder.Next(input);
  if (!request) return std::move(request).error();
  if (!*request) return false;
  replies_.clear();
  // A client that cannot take a WAIT back and asks for something else has given
  // up on it, and would take the answer for that of another request.
  if (!connection.decoder.cancels_waits()) engine_.Disconnect(connection.id);
  auto applied = engine_.Apply(connection.id, std::move(**request), replies_);
  if (!applied) return std::move(applied).error();
  for (const Outgoing& outgoing : replies_) {
    AppendReply(Find(outgoing.to).outbox, outgoing.reply);
    if (outgoing.to != connection.id) woken_.push_back(outgoing.to);
  }
  return true;
}

// Those woken cannot have left: the engine forgets whoever ends.
Server::Connection& Server::Find(ConnectionId id) {
  auto found = connections_.find(id);
  RANKRUN_CHECK(found != connections_.end(), "a reply to a connection that is gone");
  return *found->second;
}

void Server::SendReplies(Connection& connection) {
  connection.stream->Write(std::exchange(connection.outbox, {}));
  for (ConnectionId id : woken_) {
    // Empty, and nothing is written, if it was woken more than once.
    Connection& woken = Find(id);
    woken.stream->Write(std::exchange(woken.outbox, {}));
  }
  woken_.clear();
}

bool Server::IsCongested(const Connection& connection) const {
  return connection.stream->queued_bytes() >= options_.unsent_bytes;
}

// Whether all connections together are within the limit.
bool Server::AccountFor(Connection& connection) {
  size_t now_bytes = connection.decoder.held_bytes() + connection.unhandled.size() +
                     connection.stream->queued_bytes();
  bool grew = now_bytes > connection.traffic_bytes;
  traffic_bytes_ = traffic_bytes_ - connection.traffic_bytes + now_bytes;
  connection.traffic_bytes = now_bytes;
  return !grew || traffic_bytes_ <= options_.largest_traffic_bytes;
}

void Server::Refuse(Connection& connection, std::string_view why) {
  Warn("store: closed the connection from " + connection.stream->peer().ToString() + ": " +
       std::string(why));
  End(connection);
}

void Server::End(Connection& connection) {
  if (connection.ended) return;
  connection.ended = true;
  connection.stream->PauseReading();
  engine_.Disconnect(connection.id);
  ended_.push_back(connection.id);
  drop_ended_.Start(seconds(0));
}

void Server::DropEnded() {
  for (ConnectionId id : std::exchange(ended_, {})) {
    auto found = connections_.find(id);
    traffic_bytes_ -= found->second->traffic_bytes;
    connections_.erase(found);
  }
}

// One line each for the first few in a second, then one line for their number:
// a client in a loop must not fill the log.
void Server::Warn(const std::string& message) {
  if (warnings_ == 0) warn_window_.Start(seconds(1));
  warnings_ += 1;
  if (warnings_ <= kWarningsPerSecond) LogWarn(message);
}

void Server::OnWarnWindowOver() {
  if (warnings_ > kWarningsPerSecond) {
    LogWarn("store: closed or refused " + std::to_string(warnings_ - kWarningsPerSecond) +
            " more connections within a second");
  }
  warnings_ = 0;
}

}  // namespace rankrun::store

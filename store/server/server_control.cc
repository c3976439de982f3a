#include <utility>

#include "base/format.h"
#include "base/net/control_preamble.h"
#include "base/uv/uv_loop.h"
#include "store/server/server_connection.h"

// Connections that are not known to be those of a client: they may speak the
// control protocol, come from a stranger, or come before clients are admitted.

namespace rankrun::store {

Server::UserCheck Server::CheckUser(const Stream& stream) {
  if (!options_.admits_user) return {};
  auto local = stream.LocalAddress();
  if (!local) return {.problem = local.error().message};
  PeerUser user = peer_users_.Find(*local, stream.peer());
  std::string reason = PeerUsers::ReasonToRefuse(user, options_.admits_user);
  if (!reason.empty() && user.kind == PeerUser::Kind::kKnown) reason += options_.user_advice;
  return {.problem = std::move(reason),
          .is_remote = user.kind == PeerUser::Kind::kUnknown && !stream.peer().is_loopback()};
}

bool Server::MayComeFrom(const SocketAddress& peer) const {
  return !is_admission_postponed_ && admission_.CheckAddress(peer);
}

// Returns whether there is room, if need be after closing another connection.
bool Server::EnterStrangers(Connection& connection) {
  TimePoint now = MonotonicClock().Now();
  auto replaced = strangers_.Enter(connection.id, connection.stream->peer(), now);
  if (replaced) {
    Refuse(Find(*replaced), Ending::kRefused,
           "too many connections have not shown yet who they are");
  }
  if (replaced == connection.id) return false;
  if (strangers_.size() == 1) stranger_deadline_.Start(options_.stranger_timeout);
  return true;
}

void Server::OnStrangerDeadline() {
  TimePoint now = MonotonicClock().Now();
  while (auto oldest = strangers_.oldest()) {
    TimePoint deadline = oldest->since + options_.stranger_timeout;
    if (deadline > now) return stranger_deadline_.Start(deadline - now);
    strangers_.Leave(oldest->id);
    Refuse(Find(oldest->id), Ending::kRefused,
           "it has not shown within " + FormatSeconds(options_.stranger_timeout) +
               " that it belongs to this job");
  }
}

// Records that a connection is that of a client.
void Server::Identify(Connection& connection) {
  connection.silent = false;
  strangers_.Leave(connection.id);
  admission_.MarkActive(connection.stream->peer());
}

// Collects the first bytes of a connection in `unhandled`. Returns whether it
// is a client from an allowed address.
bool Server::IsClient(Connection& connection, std::string_view bytes) {
  connection.unhandled += bytes;
  auto head = std::string_view(connection.unhandled).substr(0, kControlPreamble.size());
  if (options_.control && kControlPreamble.starts_with(head)) {
    if (head.size() < kControlPreamble.size()) return false;
    connection.ended = true;  // the server is done with it
    connection.stream->PauseReading();
    strangers_.Leave(connection.id);
    control_connections_.push_back(connection.id);
    drop_ended_.Start(std::chrono::seconds(0));
    return false;
  }
  if (!connection.user_problem.empty()) {
    Refuse(connection, Ending::kRefused, connection.user_problem);
    return false;
  }
  if (is_admission_postponed_) {
    connection.held = true;
    connection.stream->PauseReading();
    Account(connection);
    return false;
  }
  auto allowed = admission_.CheckAddress(connection.stream->peer());
  if (!allowed) {
    Refuse(connection, Ending::kRefused, allowed.error().message);
    return false;
  }
  if (!connection.is_asked) return true;
  connection.stream->PauseReading();
  Account(connection);
  return false;
}

// Does nothing unless this connection may be that of a client of another host. It is asked about
// before it has sent anything: otherwise silent connections could hold their places for ever.
void Server::AskWhose(Connection& connection) {
  const SocketAddress& peer = connection.stream->peer();
  const bool may_be_client = connection.is_remote && connection.silent && !connection.ended &&
                             !connection.is_asked && MayComeFrom(peer);
  if (!options_.ask_whose || !may_be_client || !admission_.is_limited()) return;
  const auto local = connection.stream->LocalAddress();
  if (!local) return Refuse(connection, Ending::kRefused, local.error().message);
  auto entered = admission_.EnterUnvouched(peer);
  if (!entered) return Refuse(connection, Ending::kRefused, entered.error().message);
  connection.is_asked = true;
  options_.ask_whose({connection.id, *local, peer});
}

void Server::EndQuestion(Connection& connection) {
  if (std::exchange(connection.is_asked, false)) {
    admission_.LeaveUnvouched(connection.stream->peer());
  }
}

void Server::OnVouched(uint64_t client, const std::string& why) {
  loop_.AssertOnLoop();
  auto found = connections_.find(client);
  if (found == connections_.end() || found->second->ended) return;
  Connection& connection = *found->second;
  if (!connection.is_asked) return;
  EndQuestion(connection);
  connection.is_remote = false;
  // If this connection is gone, another one may have had its addresses and ports when its node
  // looked.
  const bool is_gone = why.empty() && !connection.stream->IsEstablished();
  connection.user_problem = is_gone ? "its connection is closed" : why;
  const bool may_be_control =
      options_.control && kControlPreamble.starts_with(connection.unhandled);
  if (!connection.user_problem.empty()) {
    if (may_be_control) return void(EnterStrangers(connection));
    return Refuse(connection, Ending::kRefused, connection.user_problem);
  }
  if (connection.unhandled.empty()) return;
  connection.stream->ResumeReading();
  OnData(connection, {});
}

void Server::HandOverControlConnections() {
  std::vector<std::unique_ptr<Connection>> handed_over;
  for (ConnectionId id : std::exchange(control_connections_, {})) {
    handed_over.push_back(std::move(connections_.extract(id).mapped()));
    EndQuestion(*handed_over.back());
    admission_.Leave(handed_over.back()->stream->peer(), handed_over.back()->silent);
  }
  for (auto& connection : handed_over) {
    options_.control(std::move(connection->stream), connection->unhandled);
  }
}

void Server::AdmitLater() {
  loop_.AssertOnLoop();
  is_admission_postponed_ = true;
}

void Server::AdmitOnly(std::vector<AddressRange> ranges) {
  loop_.AssertOnLoop();
  is_admission_postponed_ = false;
  admission_.Allow(std::move(ranges));
  for (auto& [id, connection] : connections_) {
    if (connection->ended) continue;
    auto allowed = admission_.CheckAddress(connection->stream->peer());
    bool may_be_control = options_.control && connection->silent && !connection->held;
    if (allowed) {
      if (connection->user_problem.empty()) strangers_.Leave(id);
      AskWhose(*connection);
    } else if (!may_be_control) {
      Refuse(*connection, Ending::kRefused, allowed.error().message);
    }
    if (connection->ended || !std::exchange(connection->held, false)) continue;
    connection->stream->ResumeReading();
    OnData(*connection, {});
  }
}

}  // namespace rankrun::store

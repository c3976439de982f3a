#include "base/control_preamble.h"
#include "base/uv_loop.h"
#include "store/server_connection.h"

// Connections that share the port of a server and speak something else.

namespace rankrun::store {

// Looks at the first bytes of a connection, which it keeps in `unhandled`.
// Whether it is known to be a client, and one that may come.
bool Server::IsClient(Connection& connection, std::string_view bytes) {
  connection.unhandled += bytes;
  const auto head = std::string_view(connection.unhandled).substr(0, kControlPreamble.size());
  if (kControlPreamble.starts_with(head)) {
    if (head.size() < kControlPreamble.size()) return false;
    connection.ended = true;  // for us
    connection.stream->PauseReading();
    guests_.push_back(connection.id);
    drop_ended_.Start(std::chrono::seconds(0));
    return false;
  }
  auto allowed = admission_.CheckAddress(connection.stream->peer());
  if (!allowed) Refuse(connection, Ending::kRefused, allowed.error().message);
  return bool(allowed);
}

void Server::HandOverGuests() {
  std::vector<std::unique_ptr<Connection>> guests;
  for (ConnectionId id : std::exchange(guests_, {})) {
    guests.push_back(std::move(connections_.extract(id).mapped()));
    admission_.Leave(guests.back()->stream->peer(), guests.back()->silent);
  }
  for (auto& guest : guests) options_.control(std::move(guest->stream), guest->unhandled);
}

void Server::AdmitOnly(std::vector<AddressRange> ranges) {
  loop_.AssertOnLoop();
  admission_.Allow(std::move(ranges));
  for (auto& [id, connection] : connections_) {
    const bool is_client = !connection->silent || !options_.control;
    if (connection->ended || !is_client) continue;
    auto allowed = admission_.CheckAddress(connection->stream->peer());
    if (!allowed) Refuse(*connection, Ending::kRefused, allowed.error().message);
  }
}

}  // namespace rankrun::store

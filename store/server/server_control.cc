#include "base/net/control_preamble.h"
#include "base/uv/uv_loop.h"
#include "store/server/server_connection.h"

// Connections on the server's port that speak the control protocol.

namespace rankrun::store {

// Collects the first bytes of a connection in `unhandled`. Returns whether it
// is a client from an allowed address.
bool Server::IsClient(Connection& connection, std::string_view bytes) {
  connection.unhandled += bytes;
  auto head = std::string_view(connection.unhandled).substr(0, kControlPreamble.size());
  if (kControlPreamble.starts_with(head)) {
    if (head.size() < kControlPreamble.size()) return false;
    connection.ended = true;  // the server is done with it
    connection.stream->PauseReading();
    control_connections_.push_back(connection.id);
    drop_ended_.Start(std::chrono::seconds(0));
    return false;
  }
  auto allowed = admission_.CheckAddress(connection.stream->peer());
  if (!allowed) Refuse(connection, Ending::kRefused, allowed.error().message);
  return bool(allowed);
}

void Server::HandOverControlConnections() {
  std::vector<std::unique_ptr<Connection>> handed_over;
  for (ConnectionId id : std::exchange(control_connections_, {})) {
    handed_over.push_back(std::move(connections_.extract(id).mapped()));
    admission_.Leave(handed_over.back()->stream->peer(), handed_over.back()->silent);
  }
  for (auto& connection : handed_over) {
    options_.control(std::move(connection->stream), connection->unhandled);
  }
}

void Server::AdmitOnly(std::vector<AddressRange> ranges) {
  loop_.AssertOnLoop();
  admission_.Allow(std::move(ranges));
  for (auto& [id, connection] : connections_) {
    bool is_client = !connection->silent || !options_.control;
    if (connection->ended || !is_client) continue;
    auto allowed = admission_.CheckAddress(connection->stream->peer());
    if (!allowed) Refuse(*connection, Ending::kRefused, allowed.error().message);
  }
}

}  // namespace rankrun::store

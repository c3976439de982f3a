#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "agent/inspect/socket_folder.h"
#include "base/clock.h"
#include "base/uv/uv_poll.h"
#include "base/uv/uv_timer.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

struct InspectLimits {
  size_t clients = 32;
  size_t request_bytes = 64 * 1024;            // of one line
  size_t queued_bytes = size_t{32} << 20;      // of answers that the client has not read
  std::chrono::milliseconds silence{600'000};  // without a request
  std::chrono::milliseconds stall{10'000};     // without progress while answers wait
};

// Server of an agent's socket: takes one request per line and sends lines back. Admits programs
// of its own user and of root. Drops a client that breaks a limit.
// Thread: loop.  Lifetime: may not end inside its callback; removes the socket from its folder.
class InspectServer {
 public:
  using ClientId = uint64_t;  // never reused
  using OnRequest = std::function<void(ClientId, std::string line)>;

  InspectServer(Loop& loop, InspectSocket socket, OnRequest on_request, InspectLimits limits = {});
  InspectServer(const InspectServer&) = delete;
  InspectServer& operator=(const InspectServer&) = delete;
  ~InspectServer();

  // Begins to accept clients. Errors: kSystem.
  Result<void> Start();

  // Sends `line` and a newline. Does nothing for a client that is gone.
  void Send(ClientId id, std::string_view line);

  // Sends the last line that answers a request.
  void SendLast(ClientId id, std::string_view line);

  size_t client_count() const { return clients_.size(); }
  size_t buffered_bytes() const;  // memory of all answers that wait

 private:
  struct Client;

  void OnConnection();
  void Admit(Fd connection);
  void OnReadable(Client& client);
  void TakeLines(Client& client);
  void Flush(Client& client);
  void EndIfDone(Client& client);
  void End(Client& client);
  void DropSlowClients();
  void Sweep();

  Loop& loop_;
  const InspectSocket socket_;
  const OnRequest on_request_;
  const InspectLimits limits_;
  std::map<ClientId, std::unique_ptr<Client>> clients_;
  ClientId next_id_ = 1;
  std::unique_ptr<Poll> accept_;
  Timer check_;  // of silent and slow clients; runs while there are clients
  Timer sweep_;  // destroys clients outside their callbacks
  Timer retry_;  // accepts again when there may be descriptors
};

}  // namespace rankrun::agent

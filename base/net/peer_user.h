#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/net/socket_address.h"

namespace rankrun {

// The user of the program at the other end of a TCP connection.
struct PeerUser {
  enum class Kind {
    kUnknown,  // on another host, in another network namespace, or the kernel does not report it
    kKnown,
    kGone,  // on this host, but its socket is closed, or the kernel does not show it
  };
  Kind kind = Kind::kUnknown;
  uid_t uid = 0;  // only kKnown
};

// Whether `user` may do what this process may: its own user, and root.
bool IsOwnUserOrRoot(uid_t user);

// Finds the users of peers on this host by netlink's sock_diag. An answer takes
// some microseconds, for other peers some ten.
// Thread: one at a time.
class PeerUsers {
 public:
  // `local` and `peer` are the addresses of a connection of this host.
  PeerUser Find(const SocketAddress& local, const SocketAddress& peer);

  // Returns why a server refuses this peer; empty if `admits` takes its user, or
  // if the user is unknown. Ask when a connection is accepted: later its peer may
  // be gone, and what it sent is still to be read.
  static std::string ReasonToRefuse(const PeerUser& user, const std::function<bool(uid_t)>& admits);
  std::string ReasonToRefuse(const SocketAddress& local, const SocketAddress& peer,
                             const std::function<bool(uid_t)>& admits);

  // Returns for each of these connections, which servers on other hosts have from programs of this
  // host, why its server refuses it; empty if `admits` takes its user, or if the kernel shows no
  // sockets. If no socket has both addresses, a gateway may have translated one: all sockets with
  // both ports of the connection count. The server has to check afterwards that its own end
  // is still established: another connection may have the addresses and ports of one that is gone.
  struct Ends {
    SocketAddress server;
    SocketAddress client;  // as the server sees it
  };
  struct Reason {
    std::string why = {};
    bool is_of_user = false;  // its user is known, and not admitted
  };
  std::vector<Reason> ReasonsToRefuse(const std::vector<Ends>& connections,
                                      const std::function<bool(uid_t)>& admits);

 private:
  struct Entry {
    bool is_connection;  // not a listener, which the kernel shows when the connection is gone
    bool has_user;       // its program has closed no direction of it
    uid_t uid;
  };
  void Open();
  std::optional<Entry> LookUp(const SocketAddress& near, const SocketAddress& far);
  struct Host;  // the addresses and connections of this host, read for one call
  std::vector<uid_t> UsersByPorts(const Ends& ends, Host& host);
  Reason ReasonToRefuseAt(const Ends& ends, Host& host, const std::function<bool(uid_t)>& admits);
  bool ShowsSockets();

  Fd netlink_;  // opened by the first look-up
};

}  // namespace rankrun

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <rankrun/dist_error.h>
#include <rankrun/export.h>
#include <rankrun/store_base.h>

// The stores of torch.distributed: keys and values through which processes
// meet. They work without a process group and without the rankrun program.
//
//   rankrun::TcpStore store({.host = "node-0", .port = 29500, .is_server = rank == 0});
//   store.Set("address/" + std::to_string(rank), address);
//   std::string first = store.Get("address/0");  // waits until it is set
namespace rankrun {

struct TcpStoreOptions {
  std::string host = "127.0.0.1";  // of the server
  uint16_t port = 29500;           // 0: any free port, for the server only
  // Whether this object also runs the server. The server listens on loopback if
  // `host` is a loopback address, otherwise on all addresses of this machine.
  // Every process that reaches the port can read and write the store.
  bool is_server = false;
  // If given, the server's constructor waits until this many objects with this
  // option, including itself, have connected.
  std::optional<int> world_size = std::nullopt;
  bool wait_for_workers = true;  // false: ignore world_size
  // Limits the constructor, and is the initial timeout(). Looking up the name
  // of `host` is limited by the resolver's own time-outs (resolv.conf) only.
  std::chrono::milliseconds timeout = std::chrono::seconds(300);
  // If not -1, a TCP socket on which the server listens instead of `port` and
  // the addresses above. It is bound already, so that no other process can take
  // the port. The object owns and closes it, unless the constructor throws
  // DistError itself.
  int listen_fd = -1;
  // Whether servers of this process with this option and the same port are one
  // server, which ends with the last of these objects. All of them have a
  // loopback address as `host`, or none. The server of a world that meets at the
  // port by Init is shared, too.
  bool multi_tenant = false;
};

// Client of a store server: a rankrun server, a PyTorch server (2.3 or newer),
// or a server in this object. A server that does not answer for a minute counts
// as lost. An object whose server is lost never reconnects; Clone() makes a new
// connection.
class RANKRUN_API TcpStore final : public Store {
 public:
  // Connects to the server, and retries while it does not run yet.
  // Throws DistNetworkError with the cause if the server cannot be reached
  // within `timeout` or is not a store; DistStoreError if workers are missing,
  // or if this machine cannot listen on the port; DistError for bad options.
  explicit TcpStore(const TcpStoreOptions& options);
  // Ends the server of this object and its thread; other clients must be done.
  ~TcpStore() override;

  uint16_t port() const;  // actual port of the server, never 0
  const std::string& host() const;
  bool is_server() const;
};

// Store in a file, for processes that share a file system; docs/store.md covers
// NFS.
class RANKRUN_API FileStore final : public Store {
 public:
  // Opens or creates the file in an existing folder. `run_id` is the same for
  // all processes of one run and different for each run. With `world_size` the file
  // is removed by the last FileStore with a `world_size` that is destroyed, once so
  // many of them were; clones belong to their original. One whose process died is
  // never destroyed, and the file stays. The counts are keys of the store. Without
  // `world_size` the program removes the file.
  // Throws DistError if the file belongs to another run or `world_size` is below 1,
  // DistStoreError if the file cannot be opened.
  FileStore(const std::string& path, const std::string& run_id,
            std::chrono::milliseconds timeout = std::chrono::seconds(300),
            std::optional<int> world_size = std::nullopt);
  ~FileStore() override;

  const std::string& path() const;
};

// Store in the memory of this process, for threads that share it or its clones.
class RANKRUN_API HashStore final : public Store {
 public:
  explicit HashStore(std::chrono::milliseconds timeout = std::chrono::seconds(300));
  ~HashStore() override;
};

// View of `store` that maps each key k to "<prefix>/k". Holds `store`. Starts
// with the time-out of `store`; later changes are independent.
class RANKRUN_API PrefixStore final : public Store {
 public:
  PrefixStore(const std::string& prefix, std::shared_ptr<Store> store);
  ~PrefixStore() override;

  const std::string& prefix() const;
  const std::shared_ptr<Store>& underlying_store() const;
};

}  // namespace rankrun

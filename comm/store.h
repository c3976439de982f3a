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
// meet. They need no process group and no rankrun.
//
//   rankrun::TcpStore store({.host = "node-0", .port = 29500, .is_server = rank == 0});
//   store.Set("address/" + std::to_string(rank), address);
//   std::string first = store.Get("address/0");  // waits until it is set
namespace rankrun {

struct TcpStoreOptions {
  std::string host = "127.0.0.1";  // of the server
  uint16_t port = 29500;           // 0: one that is free, for the server only
  // Whether this object is the server, too. It then listens on loopback only if
  // `host` is that, else on all of this machine's addresses: whoever reaches
  // the port can read and write the store.
  bool is_server = false;
  // If given, the server's constructor waits until so many objects with this
  // option, itself among them, have connected.
  std::optional<int> world_size = std::nullopt;
  bool wait_for_workers = true;  // false: as without world_size
  // For the constructor, and what timeout() is at first. Looking up the name of
  // `host` is limited by the resolver's own time-outs (resolv.conf) only.
  std::chrono::milliseconds timeout = std::chrono::seconds(300);
};

// A store in a server, which is one of rankrun's, of PyTorch's (2.3 or newer),
// or this object. A server that does not answer for a minute is lost. An object
// whose server is lost stays so; Clone() connects again.
class RANKRUN_API TcpStore final : public Store {
 public:
  // Returns when connected; tries again if the server is not there yet.
  // Throws DistNetworkError if it cannot be reached within `timeout` or is no
  // store, telling why; DistStoreError if workers did not come, or if this
  // machine cannot listen on the port; DistError for bad options.
  explicit TcpStore(const TcpStoreOptions& options);
  // Ends the server with its thread: other clients have to be done before.
  ~TcpStore() override;

  uint16_t port() const;  // the server's, also if asked for 0
  const std::string& host() const;
  bool is_server() const;
};

// A store in a file, for processes that share a file system; see docs/store.md
// about NFS. The file stays: who has made up its path removes it.
class RANKRUN_API FileStore final : public Store {
 public:
  // Opens the file or makes it, in a folder that exists. `run_id` is the same
  // for all who are to meet, and another one for the next run: DistError if the
  // file has one of another run. DistStoreError if it cannot be opened.
  FileStore(const std::string& path, const std::string& run_id,
            std::chrono::milliseconds timeout = std::chrono::seconds(300));
  ~FileStore() override;

  const std::string& path() const;
};

// A store in this process's memory: for threads, which share it or its clones.
class RANKRUN_API HashStore final : public Store {
 public:
  explicit HashStore(std::chrono::milliseconds timeout = std::chrono::seconds(300));
  ~HashStore() override;
};

// A view of `store` in which each key k is its "<prefix>/k". Holds `store`;
// starts with the time-out of that and has its own from then on.
class RANKRUN_API PrefixStore final : public Store {
 public:
  PrefixStore(const std::string& prefix, std::shared_ptr<Store> store);
  ~PrefixStore() override;

  const std::string& prefix() const;
  const std::shared_ptr<Store>& underlying_store() const;
};

}  // namespace rankrun

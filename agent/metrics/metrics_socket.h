#pragma once

#include <string>

#include "agent/job/metrics_address.h"
#include "agent/metrics/http_request.h"
#include "base/fd.h"
#include "base/result.h"

namespace rankrun::agent {

// Listening socket, non-blocking and close-on-exec. A UNIX socket is removed from the file
// system by the destructor.
class MetricsSocket {
 public:
  // Blocks on the resolver. Replaces a UNIX socket on which no process listens any more; a
  // new one is for its user alone.
  // Errors: kInvalid, "--metrics <value>: <reason>".
  static Result<MetricsSocket> Listen(const MetricsAddress& address);
  MetricsSocket(MetricsSocket&&) = default;
  MetricsSocket& operator=(MetricsSocket&&) = delete;
  ~MetricsSocket();

  int fd() const { return fd_.get(); }
  const HostNames& hosts() const { return hosts_; }
  // Whether clients of other users are refused: at a loopback address, unless it is open.
  bool is_private() const { return is_private_; }
  // Returns "http://127.0.0.1:9400/metrics" or "unix:/run/job.sock".
  const std::string& shown() const { return shown_; }

 private:
  MetricsSocket(Fd fd, std::string shown, std::string path)
      : fd_(std::move(fd)), shown_(std::move(shown)), path_(std::move(path)) {}

  static Result<MetricsSocket> ListenAt(const std::string& path);

  Fd fd_;
  std::string shown_;
  std::string path_;  // to be removed; empty: none
  HostNames hosts_ = {.any = true};
  bool is_private_ = false;
};

}  // namespace rankrun::agent

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "comm/rpc/link.h"
#include "comm/rpc/roster.h"
#include "comm/rpc/threads.h"

namespace rankrun::comm::rpc {

class Agent;

// Another worker, and the connection with it.
// Thread: any for all functions but those of Source, which the thread that polls calls.
class Peer final : public Source, public FrameSink, public std::enable_shared_from_this<Peer> {
 public:
  Peer(Agent& agent, Worker worker, std::unique_ptr<stream::Connection> connection)
      : agent_(agent), worker_(std::move(worker)), link_(std::move(connection)) {}

  const Worker& worker() const { return worker_; }
  // Returns false if the connection is lost.
  bool Send(FrameKind kind, uint64_t call, Message message) EXCLUDES(mutex_);
  void Close(std::string_view why) { link_.Close(why); }
  std::string lost_by() const { return link_.lost_by(); }
  bool is_lost() const { return link_.is_lost(); }
  bool has_queued() const { return link_.has_queued(); }
  // Calls `end` the first time. When it returns, `end` has returned.
  void EndOnce(const std::function<void()>& end) EXCLUDES(end_mutex_);
  // Lets the descriptor be polled for writing if, and only if, something is queued. Called
  // after each change of that, and once the peer is added to the threads.
  void WatchWritable() EXCLUDES(mutex_);
  // Whether the worker has announced its end.
  bool has_ended() const { return has_ended_.load(); }

  // Text of the error of calls to a worker that is lost; no value: not known yet.
  void set_loss(std::string text) EXCLUDES(mutex_);
  std::optional<std::string> loss() const EXCLUDES(mutex_);

  int fd() const override { return link_.fd(); }
  bool Move(std::vector<Task>& tasks) override EXCLUDES(mutex_);
  void OnFrame(const FrameHeader& header, std::string_view head, std::vector<Blob> blobs) override;

 private:
  Agent& agent_;
  const Worker worker_;
  Link link_;
  std::atomic<bool> has_ended_ = false;

  Mutex end_mutex_;
  bool is_over_ GUARDED_BY(end_mutex_) = false;
  mutable Mutex mutex_;
  bool awaits_writable_ GUARDED_BY(mutex_) = false;  // as the descriptor is polled
  std::optional<std::string> loss_ GUARDED_BY(mutex_);

  // For Move:
  bool is_gone_ = false;
  std::vector<Task>* tasks_ = nullptr;
};

}  // namespace rankrun::comm::rpc

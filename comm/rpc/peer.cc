#include "comm/rpc/peer.h"

#include <utility>

#include "comm/rpc/agent.h"

namespace rankrun::comm::rpc {

bool Peer::Send(FrameKind kind, uint64_t call, Message message) {
  bool is_sent = link_.Send(kind, call, std::move(message));
  if (link_.has_queued()) WatchWritable();
  return is_sent;
}

void Peer::WatchWritable() {
  MutexLock lock(mutex_);
  bool is_wanted = link_.has_queued();
  if (is_wanted == awaits_writable_) return;
  if (agent_.threads_->SetWritable(*this, is_wanted)) awaits_writable_ = is_wanted;
}

void Peer::EndOnce(const std::function<void()>& end) {
  MutexLock lock(end_mutex_);
  if (std::exchange(is_over_, true)) return;
  end();
}

void Peer::set_loss(std::string text) {
  MutexLock lock(mutex_);
  loss_ = std::move(text);
}

std::optional<std::string> Peer::loss() const {
  MutexLock lock(mutex_);
  return loss_;
}

bool Peer::Move(std::vector<Task>& tasks) {
  if (is_gone_) {  // it was lost before it was added
    agent_.threads_->Remove(*this);
    return false;
  }
  tasks_ = &tasks;
  bool any = link_.Read(*this);
  tasks_ = nullptr;
  if (link_.has_queued()) {
    link_.Write();
    WatchWritable();
  }
  if (!link_.is_lost()) return any;
  is_gone_ = true;
  agent_.threads_->Remove(*this);
  agent_.OnLost(shared_from_this());
  return true;
}

void Peer::OnFrame(const FrameHeader& header, std::string_view head, std::vector<Blob> blobs) {
  switch (header.kind) {
    case FrameKind::kRequest:
      tasks_->push_back([self = shared_from_this(), id = header.id,
                         request = Message{std::string(head), std::move(blobs)},
                         arrived = MonotonicClock().Now()]() mutable {
        self->agent_.Serve(*self, id, std::move(request), arrived);
      });
      return;
    case FrameKind::kReply:
    case FrameKind::kFailure:
      return agent_.OnReply(header, head, std::move(blobs));
    case FrameKind::kPing:
      Send(FrameKind::kReply, header.id, {});
      return;
    case FrameKind::kGoodbye:
      has_ended_.store(true);
      return;
  }
}

}  // namespace rankrun::comm::rpc

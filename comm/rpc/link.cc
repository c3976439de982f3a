#include "comm/rpc/link.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace rankrun::comm::rpc {
namespace {

// Bytes that one Read or one Write moves at most, about.
constexpr size_t kFairBytes = size_t{4} << 20;
constexpr size_t kMaxParts = 64;  // of one send
constexpr size_t kSmallMessage = 512;

constexpr std::byte kZeros[kBlobAlignment] = {};

constexpr char kDamaged[] = "the peer sends what is no message";
constexpr char kClosed[] = "the peer has closed the connection";

std::string WordsOf(ssize_t moved) {
  return std::error_code(static_cast<int>(-moved), std::generic_category()).message();
}

// Collects the parts of a message that follow its first `sent` bytes. Add is first called
// for the bytes from `begin` on.
class Parts {
 public:
  Parts(size_t sent, size_t begin) : sent_(sent), at_(begin) {}

  void Add(const void* data, size_t bytes) {
    size_t gone = std::min(sent_ > at_ ? sent_ - at_ : 0, bytes);
    at_ += bytes;
    if (gone == bytes || is_full()) return;
    parts_[count_++] = {const_cast<std::byte*>(static_cast<const std::byte*>(data)) + gone,
                        bytes - gone};
  }
  // Adds zeros up to where a blob may begin; the body begins at `body`.
  void Align(size_t body) { Add(kZeros, AlignedUp(at_ - body) - (at_ - body)); }

  bool is_full() const { return count_ == kMaxParts; }
  std::span<const iovec> get() const { return {parts_.data(), count_}; }

 private:
  const size_t sent_;
  size_t at_;
  size_t count_ = 0;
  std::array<iovec, kMaxParts> parts_;
};

std::shared_ptr<std::byte[]> Allocate(size_t bytes) {
  void* memory = std::aligned_alloc(kBlobAlignment, AlignedUp(std::max<size_t>(bytes, 1)));
  if (memory == nullptr) return nullptr;
  return std::shared_ptr<std::byte[]>(static_cast<std::byte*>(memory), std::free);
}

}  // namespace

bool Link::Send(FrameKind kind, uint64_t id, Message message) {
  Outgoing outgoing{.header = HeaderOf(kind, id, message), .sizes = {}, .message = {}};
  for (const Blob& blob : message.blobs) outgoing.sizes.push_back(blob.bytes.size());
  outgoing.message = std::move(message);
  Over over;
  MutexLock lock(mutex_);
  if (!lost_by_.empty()) return false;
  queue_.push_back(std::move(outgoing));
  if (queue_.size() == 1) WriteQueued(over);
  return lost_by_.empty();
}

void Link::Write() {
  Over over;
  MutexLock lock(mutex_);
  WriteQueued(over);
}

// Writes up to kFairBytes.
void Link::WriteQueued(Over& over) {
  for (size_t written = 0; !queue_.empty() && written < kFairBytes;) {
    Outgoing& first = queue_.front();
    ssize_t moved = WriteSome(first);
    if (moved == -EAGAIN) break;
    if (moved < 0) return Lose(WordsOf(moved), over);
    first.sent += static_cast<size_t>(moved);
    written += static_cast<size_t>(moved);
    if (first.sent < sizeof first.header + first.header.bytes) continue;
    over.push_back(std::move(first));
    queue_.pop_front();
  }
  has_queued_.store(!queue_.empty());
}

// Sends the next bytes of a message. Returns as Connection::Send.
ssize_t Link::WriteSome(Outgoing& first) {
  constexpr size_t kHeader = sizeof first.header;
  const std::vector<Blob>& blobs = first.message.blobs;
  const size_t head = kHeader + first.sizes.size() * sizeof(uint64_t) + first.message.head.size();
  if (first.sent == 0 && blobs.empty() && head <= kSmallMessage) {
    std::array<std::byte, kSmallMessage> joined;  // one part costs the kernel less
    std::memcpy(joined.data(), &first.header, kHeader);
    std::memcpy(joined.data() + kHeader, first.message.head.data(), first.message.head.size());
    const iovec part{joined.data(), head};
    return connection_->Send({&part, 1});
  }
  if (first.before == 0) first.before = head;
  // Passes over the blobs that are sent whole.
  while (first.first_blob < blobs.size()) {
    size_t begin = kHeader + AlignedUp(first.before - kHeader);
    size_t end = begin + blobs[first.first_blob].bytes.size();
    if (first.sent < end) break;
    first.before = end;
    first.first_blob += 1;
  }
  bool is_in_head = first.sent < head;
  Parts parts(first.sent, is_in_head ? 0 : first.before);
  if (is_in_head) {
    parts.Add(&first.header, kHeader);
    parts.Add(first.sizes.data(), first.sizes.size() * sizeof(uint64_t));
    parts.Add(first.message.head.data(), first.message.head.size());
  }
  for (size_t i = first.first_blob; i < blobs.size() && !parts.is_full(); ++i) {
    parts.Align(kHeader);
    parts.Add(blobs[i].bytes.data(), blobs[i].bytes.size());
  }
  return connection_->Send(parts.get());
}

void Link::Lose(std::string_view why, Over& over) {
  if (lost_by_.empty()) {
    lost_by_ = why;
    connection_->ShutDown();  // also in the middle of a frame
  }
  for (Outgoing& each : queue_) over.push_back(std::move(each));
  queue_.clear();
  has_queued_.store(false);
  is_lost_.store(true, std::memory_order_release);
}

std::string Link::lost_by() const {
  MutexLock lock(mutex_);
  return lost_by_;
}

void Link::Close(std::string_view why) {
  Over over;
  MutexLock lock(mutex_);
  if (lost_by_.empty()) Lose(why, over);
}

bool Link::Read(FrameSink& sink) {
  bool any = false;
  for (size_t taken = 0; taken < kFairBytes;) {
    std::array<iovec, 2> parts;
    size_t count = 0;
    if (body_ != nullptr) {
      parts[count++] = {body_.get() + body_read_, header_.bytes - body_read_};
    }
    parts[count++] = {buffer_.data() + buffer_end_, buffer_.size() - buffer_end_};
    ssize_t moved = connection_->Receive({parts.data(), count});
    if (moved == -EAGAIN) return any;
    if (moved <= 0) {
      Close(moved == 0 ? kClosed : WordsOf(moved));
      return true;
    }
    any = true;
    auto bytes = static_cast<size_t>(moved);
    taken += bytes;
    size_t room = parts[0].iov_len + (count > 1 ? parts[1].iov_len : 0);
    bool is_drained = bytes < room;  // another receive would find nothing
    if (body_ != nullptr) {
      size_t of_body = std::min(bytes, header_.bytes - body_read_);
      body_read_ += of_body;
      bytes -= of_body;
    }
    buffer_end_ += bytes;
    if (!Parse(sink)) {
      Close(kDamaged);
      return true;
    }
    if (is_drained) return true;
  }
  return any;
}

// Delivers the frames that are complete. Returns false for bytes that are no frame.
bool Link::Parse(FrameSink& sink) {
  for (;;) {
    if (!in_frame_) {
      if (buffer_end_ - buffer_begin_ < sizeof header_) break;
      std::memcpy(&header_, buffer_.data() + buffer_begin_, sizeof header_);
      buffer_begin_ += sizeof header_;
      if (!IsPlausible(header_)) return false;
      in_frame_ = true;
    }
    if (!ParseBody(sink)) return false;
    if (in_frame_) break;
  }
  std::copy(buffer_.data() + buffer_begin_, buffer_.data() + buffer_end_, buffer_.data());
  buffer_end_ -= buffer_begin_;
  buffer_begin_ = 0;
  return true;
}

bool Link::ParseBody(FrameSink& sink) {
  size_t here = buffer_end_ - buffer_begin_;
  bool is_whole = body_ == nullptr && here >= header_.bytes;
  if (is_whole && header_.blobs == 0) {  // needs no memory of its own
    std::span<const std::byte> bytes{buffer_.data() + buffer_begin_, header_.bytes};
    buffer_begin_ += header_.bytes;
    in_frame_ = false;
    Body body;
    if (!rpc::Parse(header_, bytes, body)) return false;
    sink.OnFrame(header_, body.head, {});
    return true;
  }
  if (body_ == nullptr) {
    body_ = Allocate(header_.bytes);
    if (body_ == nullptr) return false;
    body_read_ = std::min<size_t>(here, header_.bytes);
    std::memcpy(body_.get(), buffer_.data() + buffer_begin_, body_read_);
    buffer_begin_ += body_read_;
  }
  if (body_read_ < header_.bytes) return true;
  std::shared_ptr<std::byte[]> whole = std::move(body_);
  in_frame_ = false;
  Body body;
  if (!rpc::Parse(header_, {whole.get(), header_.bytes}, body)) return false;
  std::vector<Blob> blobs;
  for (std::span<const std::byte> bytes : body.blobs) blobs.push_back({whole, bytes});
  sink.OnFrame(header_, body.head, std::move(blobs));
  return true;
}

}  // namespace rankrun::comm::rpc

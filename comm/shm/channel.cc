#include "comm/shm/channel.h"

#include <bit>
#include <cstring>

namespace rankrun::comm::shm {
namespace {

constexpr size_t kMaxRingBytes = 128 * 1024;
constexpr size_t kMinRingBytes = 4096;
constexpr size_t kAllRingsBytes = 64 * 1024 * 1024;

// Returns whether the other end can have moved `bytes` ahead. Its counter is
// trusted no further, because it selects the memory to copy.
bool IsStep(uint64_t bytes, uint64_t possible) { return bytes <= possible && bytes % kGrain == 0; }

size_t InGrains(size_t bytes) { return SegmentLayout::RoundUp(bytes, kGrain); }

}  // namespace

size_t MessageBytes(int world_size) { return MessageLayout{.world_size = world_size}.size(); }

size_t MessageLayout::RingBytes() const {
  size_t each = kAllRingsBytes / (Index(world_size) * Index(world_size));
  return std::clamp(std::bit_floor(each), kMinRingBytes, kMaxRingBytes);
}

size_t ChannelWriter::Room() {
  size_t room = capacity() - (written_ - read_);
  if (room == capacity()) return room;
  uint64_t read = place_.state.read.load(std::memory_order_acquire);
  damaged_ |= !IsStep(read - read_, written_ - read_);
  if (damaged_) return 0;
  read_ = read;
  return capacity() - (written_ - read_);
}

void ChannelWriter::Write(const void* data, size_t bytes) {
  size_t at = written_ & (capacity() - 1);
  size_t first = std::min(bytes, capacity() - at);
  if (data != nullptr && bytes > 0) {
    std::memcpy(place_.ring + at, data, first);
    std::memcpy(place_.ring, static_cast<const std::byte*>(data) + first, bytes - first);
  }
  written_ += InGrains(bytes);
}

void ChannelWriter::Publish() {
  if (published_ == written_) return;
  published_ = written_;
  place_.state.written.store(written_, std::memory_order_release);
  place_.other_end.Ring();
}

size_t ChannelReader::Ready() {
  if (written_ == read_ && !damaged_) {
    uint64_t written = place_.state.written.load(std::memory_order_acquire);
    damaged_ = !IsStep(written - read_, capacity());
    if (!damaged_) written_ = written;
  }
  return written_ - read_;
}

void ChannelReader::Read(void* data, size_t bytes) {
  size_t at = read_ & (capacity() - 1);
  size_t first = std::min(bytes, capacity() - at);
  if (data != nullptr && bytes > 0) {
    std::memcpy(data, place_.ring + at, first);
    std::memcpy(static_cast<std::byte*>(data) + first, place_.ring, bytes - first);
  }
  read_ += InGrains(bytes);
}

void ChannelReader::Publish() {
  if (published_ == read_) return;
  published_ = read_;
  place_.state.read.store(read_, std::memory_order_release);
  place_.other_end.Ring();
}

}  // namespace rankrun::comm::shm

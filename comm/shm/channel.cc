#include "comm/shm/channel.h"

#include <bit>
#include <cstring>

namespace rankrun::comm {
namespace {

constexpr std::size_t kMostRingBytes = 128 * 1024;
constexpr std::size_t kLeastRingBytes = 4096;
constexpr std::size_t kAllRingsBytes = 64 * 1024 * 1024;

std::size_t InGrains(std::size_t bytes) { return SegmentLayout::RoundUp(bytes, kGrain); }

}  // namespace

std::size_t MessageBytes(int world_size) { return MessageLayout{.world_size = world_size}.size(); }

std::size_t MessageLayout::RingBytes() const {
  const std::size_t each = kAllRingsBytes / (Index(world_size) * Index(world_size));
  return std::clamp(std::bit_floor(each), kLeastRingBytes, kMostRingBytes);
}

std::size_t ChannelWriter::Room() {
  const std::size_t room = capacity() - (written_ - read_);
  if (room == capacity()) return room;
  read_ = place_.state.read.load(std::memory_order_acquire);
  return capacity() - (written_ - read_);
}

void ChannelWriter::Write(const void* data, std::size_t bytes) {
  const std::size_t at = written_ & (capacity() - 1);
  const std::size_t first = std::min(bytes, capacity() - at);
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

std::size_t ChannelReader::Ready() {
  if (written_ == read_) written_ = place_.state.written.load(std::memory_order_acquire);
  return written_ - read_;
}

void ChannelReader::Read(void* data, std::size_t bytes) {
  const std::size_t at = read_ & (capacity() - 1);
  const std::size_t first = std::min(bytes, capacity() - at);
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

}  // namespace rankrun::comm

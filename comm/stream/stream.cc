#include "comm/stream/stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace rankrun::comm::stream {
namespace {

// Data is reduced in pieces of this size, which stay in the cache of the
// processor between the kernel's copy and the reduction.
constexpr size_t kStagingBytes = size_t{128} << 10;

// Fills `parts` with the rest of a header and its data after `done` bytes.
// Returns how many parts there are.
size_t Rest(std::byte* header, Block data, size_t done, std::array<iovec, 2>& parts) {
  size_t count = 0;
  if (done < sizeof(FrameHeader)) {
    parts[count++] = {header + done, sizeof(FrameHeader) - done};
    done = sizeof(FrameHeader);
  }
  if (data.bytes > 0) parts[count++] = {data.data, data.bytes};
  return count;
}

}  // namespace

void Stream::BeginSend(const FrameHeader& header, ConstBlock data) {
  out_header_ = header;
  out_header_.bytes = data.bytes;
  out_data_ = data;
  send_left_ = sizeof out_header_ + data.bytes;
}

Stream::Progress Stream::Send() {
  Progress progress = Progress::kNone;
  while (send_left_ > 0) {
    size_t done = sizeof out_header_ + out_data_.bytes - send_left_;
    size_t data_done = done - std::min(done, sizeof out_header_);
    std::array<iovec, 2> parts;
    size_t count = Rest(reinterpret_cast<std::byte*>(&out_header_),
                        {const_cast<std::byte*>(out_data_.data) + data_done,  // only read
                         out_data_.bytes - data_done},
                        done, parts);
    ssize_t written = connection_->Send({parts.data(), count});
    if (written == -EAGAIN) return progress;
    if (written < 0) return Lost(static_cast<int>(-written));
    send_left_ -= static_cast<size_t>(written);
    progress = Progress::kSome;
  }
  return Progress::kDone;
}

void Stream::BeginReceive(const Incoming& incoming, size_t offset, size_t bytes) {
  receives_ = true;
  header_read_ = read_ = reduced_ = 0;
  is_accepted_ = false;
  incoming_ = incoming;
  offset_ = offset;
  bytes_ = bytes;
  if (!incoming.reducer || bytes == 0) return;
  piece_bytes_ = incoming.reduces_after_send ? bytes : std::min(bytes, kStagingBytes);
  if (staging_bytes_ >= piece_bytes_) return;
  staging_ = std::make_unique_for_overwrite<std::byte[]>(piece_bytes_);
  staging_bytes_ = piece_bytes_;
}

// Returns the memory for the data that arrives next.
Block Stream::NextSpace() {
  if (!incoming_.reducer) return {incoming_.data.data + offset_ + read_, bytes_ - read_};
  size_t staged = read_ - reduced_;
  return {staging_.get() + staged, std::min(bytes_ - read_, piece_bytes_ - staged)};
}

Stream::Progress Stream::Receive() {
  Progress progress = Progress::kNone;
  for (;;) {
    if (header() != nullptr && !is_accepted_) return Progress::kSome;
    if (is_accepted_) ReduceFullStaging();
    if (is_accepted_ && read_ == bytes_) break;
    std::array<iovec, 2> parts;
    size_t count = Rest(reinterpret_cast<std::byte*>(&header_), NextSpace(), header_read_, parts);
    ssize_t got = connection_->Receive({parts.data(), count});
    if (got == -EAGAIN) return progress;
    if (got <= 0) return Lost(static_cast<int>(-got));
    size_t of_header = std::min(static_cast<size_t>(got), sizeof header_ - header_read_);
    header_read_ += of_header;
    read_ += static_cast<size_t>(got) - of_header;
    progress = Progress::kSome;
  }
  return Progress::kDone;
}

// Makes room for the data that arrives next.
void Stream::ReduceFullStaging() {
  if (!incoming_.reducer || incoming_.reduces_after_send) return;
  if (read_ - reduced_ == piece_bytes_ || read_ == bytes_) ReduceStaged();
}

void Stream::ReduceStaged() {
  size_t staged = read_ - reduced_;
  if (staged > 0) incoming_.reducer->Apply(staging_.get(), offset_ + reduced_, staged);
  reduced_ = read_;
}

void Stream::FinishReceive() {
  if (incoming_.reducer && incoming_.reduces_after_send) ReduceStaged();
  receives_ = false;
}

Stream::Progress Stream::Lost(int error_number) {
  closed_by_ =
      error_number == 0 ? "the connection was closed" : std::string(std::strerror(error_number));
  return Progress::kClosed;
}

void Stream::Close() {
  send_left_ = 0;
  receives_ = false;
  connection_->ShutDown();
}

}  // namespace rankrun::comm::stream

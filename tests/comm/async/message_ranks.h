#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/shm/messages.h"
#include "tests/comm/memory_store.h"
#include "tests/comm/ranks.h"

namespace rankrun::comm {

constexpr std::chrono::seconds kMessageLimit{60};

// Returns pseudo-random bytes.
inline std::string Text(uint64_t seed, size_t bytes) {
  std::string text(bytes, '\0');
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (char& c : text) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    c = static_cast<char>(state >> 56);
  }
  return text;
}

inline Block BlockOf(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}
inline ConstBlock BlockOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// One rank of a test. Its global rank is 10 higher.
class MessageRank {
 public:
  MessageRank(store::Store& store, int rank, int ranks) : rank_(rank), ranks_(ranks) {
    BackendConfig config{.global_ranks = {},
                         .group_rank = rank,
                         .store = store,
                         .key_prefix = "group/",
                         .network_interface = "",
                         .host = "",
                         .timeout = kMessageLimit};
    for (int r = 0; r < ranks; ++r) config.global_ranks.push_back(10 + r);
    auto segment = shm::Segment::Meet(config, 4096);
    EXPECT_TRUE(segment) << segment.error().message;
    segment_ = *std::move(segment);
    messages_ = std::make_unique<shm::Messages>(*segment_, DeathWatch());
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  shm::Messages& messages() { return *messages_; }
  const shm::Segment& segment() const { return *segment_; }

  // `data` outlives the transfer.
  std::unique_ptr<Transfer> StartSend(const std::string& data, int to, uint64_t tag = 0,
                                      DType dtype = DType::kUInt8) {
    auto transfer = messages_->StartSend(BlockOf(data), to, {.tag = tag, .dtype = dtype});
    EXPECT_TRUE(transfer);
    return *std::move(transfer);
  }
  std::unique_ptr<Transfer> StartRecv(std::string& data, std::optional<int> from, uint64_t tag = 0,
                                      DType dtype = DType::kUInt8) {
    auto transfer = messages_->StartRecv(BlockOf(data), from, {.tag = tag, .dtype = dtype});
    EXPECT_TRUE(transfer);
    return *std::move(transfer);
  }
  Result<void> Send(const std::string& data, int to, uint64_t tag = 0) {
    return StartSend(data, to, tag)->Wait(kMessageLimit);
  }
  // Returns the received bytes, or "error: <message>".
  std::string Recv(size_t bytes, std::optional<int> from, uint64_t tag = 0, int* source = nullptr) {
    std::string data(bytes, '?');
    auto transfer = StartRecv(data, from, tag);
    auto ok = transfer->Wait(kMessageLimit);
    if (!ok) return "error: " + ok.error().message;
    if (source != nullptr) *source = transfer->source();
    return data;
  }
  // Waits for all ranks, by empty messages to rank 0 and back.
  void Meet() {
    constexpr uint64_t kMeeting = uint64_t{1} << 32;
    for (int r = 1; r < ranks_; ++r) {
      if (rank_ == 0) {
        EXPECT_EQ(Recv(0, r, kMeeting), "");
      }
      if (rank_ == r) {
        EXPECT_TRUE(Send("", 0, kMeeting));
      }
    }
    for (int r = 1; r < ranks_; ++r) {
      if (rank_ == 0) {
        EXPECT_TRUE(Send("", r, kMeeting));
      }
      if (rank_ == r) {
        EXPECT_EQ(Recv(0, 0, kMeeting), "");
      }
    }
  }
  void Leave() {
    messages_.reset();
    segment_.reset();
  }

 private:
  const int rank_;
  const int ranks_;
  std::unique_ptr<shm::Segment> segment_;
  std::unique_ptr<shm::Messages> messages_;
};

// Runs `body` for each rank, in a thread of its own.
inline void RunMessageRanks(int ranks, const std::function<void(MessageRank&)>& body) {
  auto keys = std::make_shared<MemoryKeys>();
  RunRanks(ranks, [&](int rank) {
    MemoryStore store(keys);
    MessageRank me(store, rank, ranks);
    body(me);
  });
}

}  // namespace rankrun::comm

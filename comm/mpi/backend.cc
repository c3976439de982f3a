#include "comm/mpi/backend.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/roll_call.h"
#include "comm/core/time_left.h"
#include "comm/mpi/channel.h"
#include "comm/mpi/progress.h"
#include "comm/mpi/runtime.h"
#include "comm/stream/backend.h"

namespace rankrun::comm::mpi {
namespace {

using std::chrono::milliseconds;

// Longest wait in the store for the other ranks, between two checks for a death.
constexpr milliseconds kSlice{50};

// Connections with one peer, by their tags: for messages, and for collectives.
constexpr int kControl = 0;
constexpr int kData = 1;

// Bytes of one message of MPI on each of them.
constexpr size_t kControlBytes = 16 * 1024;
constexpr size_t kDataBytes = 64 * 1024;

constexpr char kRefusal = '!';

class MpiConnection final : public stream::Connection {
 public:
  explicit MpiConnection(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}
  ~MpiConnection() override { channel_->Close(); }

  int fd() const override { return channel_->fd(); }
  void RefreshFd() override { channel_->RefreshFd(); }
  ssize_t Send(std::span<const iovec> parts) override { return channel_->Send(parts); }
  ssize_t Receive(std::span<const iovec> parts) override { return channel_->Receive(parts); }
  void ShutDown() override { channel_->ShutDown(); }

 private:
  const std::shared_ptr<Channel> channel_;
};

// Publishes `text` and returns the texts of all members, once they have published theirs.
// `step`: a part of the keys.
Result<std::vector<std::string>> Meet(const std::string& step, const std::string& text,
                                      const BackendConfig& config, TimePoint deadline) {
  auto key = [&](int rank) { return config.key_prefix + "/" + step + "/" + std::to_string(rank); };
  const TimePoint began = MonotonicClock().Now();
  if (auto ok = config.store.Set(key(config.group_rank), text); !ok) return ok.error();
  std::vector<std::string> keys;
  for (int r = 0; r < config.world_size(); ++r) keys.push_back(key(r));
  for (;;) {
    milliseconds left = TimeLeft(deadline);
    auto values = config.store.MultiGet(keys, std::min(left, kSlice));
    if (config.deaths.has_death()) return config.deaths.ErrorSince(began);
    bool goes_on = !values && values.error().code == ErrorCode::kTimeout && left > kSlice;
    if (!goes_on) return values;
  }
}

// As Meet, where a member publishes an error instead of its text.
Result<std::vector<std::string>> MeetUnless(const Result<void>& mine, const std::string& step,
                                            const std::string& text, const BackendConfig& config,
                                            TimePoint deadline) {
  auto texts = Meet(step, mine ? text : kRefusal + mine.error().message, config, deadline);
  if (!mine) return mine.error();
  if (!texts) return texts;
  for (size_t r = 0; r < texts->size(); ++r) {
    if (!(*texts)[r].starts_with(kRefusal)) continue;
    return Error{ErrorCode::kInvalid,
                 RanksInWords({config.global_ranks[r]}) + ": " + (*texts)[r].substr(1)};
  }
  return texts;
}

std::string Introduction() {
  int rank = 0;
  static_cast<void>(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  return MpiNamespace() + " " + std::to_string(rank);
}

// Returns the ranks of the members in MPI_COMM_WORLD, by group rank.
Result<std::vector<int>> RanksOf(const std::vector<std::string>& introductions,
                                 const BackendConfig& config) {
  std::vector<int> ranks;
  const std::string& first = introductions.front();
  for (size_t r = 0; r < introductions.size(); ++r) {
    const std::string& text = introductions[r];
    const std::string who = RanksInWords({config.global_ranks[r]});
    size_t space = text.rfind(' ');
    if (text.substr(0, space) != first.substr(0, first.rfind(' '))) {
      return Error{ErrorCode::kInvalid, who + " is of another job of mpirun than " +
                                            RanksInWords({config.global_ranks[0]}) +
                                            ": want one job for all ranks"};
    }
    ranks.push_back(std::atoi(text.c_str() + space + 1));
  }
  return ranks;
}

// Returns a number by which MPI tells apart groups that threads make at the same time.
// Source: the hash FNV-1a.
int TagFor(const std::string& key_prefix) {
  uint32_t hash = 2166136261;
  for (char c : key_prefix) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  constexpr uint32_t kMaxTag = 32767;  // that every MPI has
  return static_cast<int>(hash % (kMaxTag + 1));
}

// Makes a communicator with the ranks of the group. MPI waits for all members without a
// time-out; they have met just before, and MPI's launcher ends all when one is lost.
Result<std::shared_ptr<Communicator>> MakeCommunicator(const std::vector<int>& ranks, int tag) {
  MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  if (auto ok = Mpi(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group"); !ok) return ok.error();
  int status = MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &members);
  static_cast<void>(MPI_Group_free(&all));
  if (auto ok = Mpi(status, "MPI_Group_incl"); !ok) return ok.error();
  MPI_Comm comm = MPI_COMM_NULL;
  status = MPI_Comm_create_group(MPI_COMM_WORLD, members, tag, &comm);
  static_cast<void>(MPI_Group_free(&members));
  if (auto ok = Mpi(status, "MPI_Comm_create_group"); !ok) return ok.error();
  auto made = std::make_shared<Communicator>(comm);
  if (auto ok = Mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
      !ok) {
    return ok.error();
  }
  return made;
}

Result<std::unique_ptr<stream::Connection>> Connect(
    const std::shared_ptr<Communicator>& communicator, const Channel::Place& place) {
  auto channel = Channel::Open(communicator, place);
  if (!channel) return std::move(channel).error();
  if (auto ok = AddToProgress(*channel); !ok) return ok.error();
  return std::unique_ptr<stream::Connection>(new MpiConnection(*std::move(channel)));
}

Result<std::vector<stream::PeerConnections>> ConnectAll(const std::vector<int>& ranks,
                                                        const BackendConfig& config) {
  auto communicator = MakeCommunicator(ranks, TagFor(config.key_prefix));
  if (!communicator) return std::move(communicator).error();
  std::vector<stream::PeerConnections> peers(ranks.size());
  for (int peer = 0; peer < config.world_size(); ++peer) {
    if (peer == config.group_rank) continue;
    auto control = Connect(*communicator, {.peer = peer, .tag = kControl, .bytes = kControlBytes});
    if (!control) return std::move(control).error();
    auto data = Connect(*communicator, {.peer = peer, .tag = kData, .bytes = kDataBytes});
    if (!data) return std::move(data).error();
    auto& with_peer = peers[static_cast<size_t>(peer)];
    with_peer.control = *std::move(control);
    with_peer.data.push_back(*std::move(data));
  }
  return peers;
}

// Returns the ranks of the members in MPI_COMM_WORLD, once MPI has started on all and all
// are ready to connect.
Result<std::vector<int>> StartTogether(const BackendConfig& config) {
  const TimePoint deadline = MonotonicClock().Now() + config.timeout;
  auto able = MeetUnless(CheckMpi(config.world_size()), "able", "", config, deadline);
  if (!able) return std::move(able).error();
  auto started = StartMpi();
  auto introductions = MeetUnless(started, "rank", started ? Introduction() : "", config, deadline);
  if (!introductions) return std::move(introductions).error();
  auto ranks = RanksOf(*introductions, config);
  if (!ranks) return ranks;
  auto ready = Meet("ready", "", config, deadline);
  if (!ready) return std::move(ready).error();
  return ranks;
}

}  // namespace

Result<std::unique_ptr<Backend>> Create(const BackendConfig& config) {
  std::vector<stream::PeerConnections> peers(1);
  if (config.world_size() > 1) {
    auto ranks = StartTogether(config);
    if (!ranks) return std::move(ranks).error();
    auto connected = ConnectAll(*ranks, config);
    if (!connected) return std::move(connected).error();
    peers = *std::move(connected);
  }
  return std::unique_ptr<Backend>(std::make_unique<stream::StreamBackend>(
      config, std::move(peers), stream::CountRanksHere(config)));
}

}  // namespace rankrun::comm::mpi

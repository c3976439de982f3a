#include "comm/core/schedule_doubling.h"

#include <bit>
#include <utility>

#include "comm/core/steps.h"

namespace rankrun::comm {
namespace {

using steps::Output;
using steps::Receive;
using steps::Send;

// Positions 0 .. size - 1 of the ranks that take part. They are in the order of
// ranks.
class Participants {
 public:
  explicit Participants(const RankPlace& place)
      : rank_(place.rank), size_(HalvingParts(place.ranks)), pairs_(place.ranks - size_) {}

  int size() const { return size_; }
  bool is_in_pair() const { return rank_ < 2 * pairs_; }
  bool takes_part() const { return !is_in_pair() || rank_ % 2 == 0; }
  int position() const { return is_in_pair() ? rank_ / 2 : rank_ - pairs_; }
  int RankAt(int position) const { return position < pairs_ ? 2 * position : position + pairs_; }

 private:
  int rank_;
  int size_;
  int pairs_;
};

Step ReduceReceived(const Part& to, int from, int own_rank) {
  return {.to = to, .receive_from = from, .with = to, .received_first = from < own_rank};
}

// Adds the steps of a pair to those of the ranks that take part. `all` is the
// data.
Schedule WithPairs(const RankPlace& place, const Part& all, Schedule exchange) {
  Participants participants(place);
  if (!participants.is_in_pair()) return exchange;
  int other = place.rank ^ 1;
  if (!participants.takes_part()) return {Send(all, other), Receive(all, other)};
  exchange.insert(exchange.begin(), ReduceReceived(all, other, place.rank));
  exchange.push_back(Send(all, other));
  return exchange;
}

// Range of parts that a rank reduces or holds.
struct Range {
  int begin;
  int count;
  Part part() const { return Output(begin, count); }
};

// Returns the range that the rank at `position` keeps when it has halved its
// range with the rank at the distance `distance`, or the other half.
Range Half(const Range& range, int position, int distance) {
  int half = range.count / 2;
  return {(position & distance) == 0 ? range.begin : range.begin + half, half};
}

}  // namespace

int HalvingParts(int ranks) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned int>(ranks)));
}

Schedule AllReduceDoubling(const RankPlace& place) {
  Participants participants(place);
  Schedule steps;
  for (int distance = 1; distance < participants.size(); distance *= 2) {
    int peer = participants.RankAt(participants.position() ^ distance);
    Step step = ReduceReceived(Output(0), peer, place.rank);
    step.from = Output(0);
    step.send_to = peer;
    step.completes = 2 * distance == participants.size();
    steps.push_back(step);
  }
  return WithPairs(place, Output(0), std::move(steps));
}

// The nearest ranks exchange first, since then each rank has the sum of
// consecutive ranks, as in AllReduceDoubling.
Schedule AllReduceHalving(const RankPlace& place) {
  Participants participants(place);
  int position = participants.position();
  Range own{0, participants.size()};
  Schedule reduce;
  Schedule gather;  // in reverse
  for (int distance = 1; distance < participants.size(); distance *= 2) {
    int peer = participants.RankAt(position ^ distance);
    Range given = Half(own, position ^ distance, distance);
    own = Half(own, position, distance);
    Step step = ReduceReceived(own.part(), peer, place.rank);
    step.from = given.part();
    step.send_to = peer;
    step.completes = 2 * distance == participants.size();
    reduce.push_back(step);
    gather.push_back(
        {.from = own.part(), .to = given.part(), .send_to = peer, .receive_from = peer});
  }
  reduce.insert(reduce.end(), gather.rbegin(), gather.rend());
  return WithPairs(place, Output(0, participants.size()), std::move(reduce));
}

}  // namespace rankrun::comm

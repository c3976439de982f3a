#pragma once

#include <deque>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "comm/core/schedule.h"

namespace rankrun::comm {

// Content of a block: the shares that were reduced into it, in the order of the
// operands, and their sum.
struct Content {
  std::vector<int> shares = {};
  float sum = 0;
  int divisions = 0;  // by the number of ranks, as kAvg needs

  bool operator==(const Content&) const = default;
};
void PrintTo(const Content& content, std::ostream* out);

// Returns block `index` of a rank before the collective. Its float has another
// magnitude than those of other ranks, so that their order changes the sum.
Content Share(int rank, int index);

// Returns the shares of block `index` in the order of ranks, from `first` on.
std::vector<int> SharesFrom(int first, int ranks, int index);

// Whether a send completes at once, or only when its receive has started.
enum class SendMode { kEager, kRendezvous };

// All ranks of a collective, carried out in one thread with queues of messages.
// A step that breaks a rule of Step fails the test.
class ScheduleSimulation {
 public:
  struct Rank {
    Schedule schedule;
    std::map<int, Content> inputs = {};
    std::map<int, Content> outputs = {};
    std::map<int, Content> scratch = {};
    bool in_place = false;  // whether inputs are the outputs
    size_t next = 0;        // step under way
    bool started = false;   // whether it has started; sent, received: its halves
    bool sent = false;
    bool received = false;
    std::vector<Content> staging = {};

    bool done() const { return next == schedule.size(); }
    // Steps that send or receive, and the blocks that they send.
    int messages() const;
    int blocks_sent() const;
  };
  using MakeSchedule = std::function<Schedule(const RankPlace&)>;

  ScheduleSimulation(int ranks, const MakeSchedule& make, int root = 0);

  int size() const { return static_cast<int>(ranks_.size()); }
  Rank& operator[](int r) { return ranks_.at(static_cast<size_t>(r)); }

  // Returns whether all ranks finished and no message is left.
  bool Run(SendMode mode);

 private:
  struct Message {
    std::vector<Content> blocks;
    int sender;
  };

  bool Move(int r, SendMode mode);
  void Start(int r, SendMode mode);
  void Finish(int r);
  void CheckStep(int r, const Step& step);
  Content Reduced(const Content& first, const Content& second, bool completes);
  static std::map<int, Content>& Blocks(Rank& rank, Part::Place place);
  static std::vector<Content> Read(Rank& rank, const Part& part);
  static void Write(Rank& rank, const Part& part, const std::vector<Content>& blocks);

  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<Message>> lines_;  // by sender and receiver
};

}  // namespace rankrun::comm

#include "tests/comm/core/schedule_simulation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rankrun::comm {
namespace {

bool Overlap(const Part& a, const Part& b) {
  return a.place == b.place && a.index < b.index + b.count && b.index < a.index + a.count;
}

bool IsExchange(const Step& step) { return step.kind == Step::Kind::kExchange; }

}  // namespace

void PrintTo(const Content& content, std::ostream* out) {
  *out << testing::PrintToString(content.shares) << " = " << content.sum << ", divided "
       << content.divisions << " times";
}

Content Share(int rank, int index) {
  int share = rank * 1000 + index;
  auto hash = static_cast<unsigned int>(share + 1) * 2654435761U;
  float sign = hash % 3 == 0 ? -1.0F : 1.0F;
  float fraction = 1.0F + static_cast<float>(hash >> 9) / static_cast<float>(1U << 23);
  return {{share}, sign * std::ldexp(fraction, static_cast<int>(hash / 7 % 12))};
}

std::vector<int> SharesFrom(int first, int ranks, int index) {
  std::vector<int> shares;
  for (int k = 0; k < ranks; ++k) shares.push_back((first + k) % ranks * 1000 + index);
  return shares;
}

int ScheduleSimulation::Rank::messages() const {
  int messages = 0;
  for (const Step& step : schedule) messages += IsExchange(step) ? 1 : 0;
  return messages;
}

int ScheduleSimulation::Rank::blocks_sent() const {
  int blocks = 0;
  for (const Step& step : schedule) {
    if (IsExchange(step) && step.send_to != Step::kNobody) blocks += step.from.count;
  }
  return blocks;
}

ScheduleSimulation::ScheduleSimulation(int ranks, const MakeSchedule& make, int root) {
  for (int r = 0; r < ranks; ++r) ranks_.push_back({.schedule = make({r, ranks, root})});
}

bool ScheduleSimulation::Run(SendMode mode) {
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < size(); ++r) {
      while (!(*this)[r].done() && Move(r, mode)) moved = true;
    }
  }
  for (const Rank& rank : ranks_) {
    if (!rank.done()) return false;
  }
  for (const auto& [ends, line] : lines_) {
    if (!line.empty()) return false;
  }
  return true;
}

// Returns whether the rank's step started or finished.
bool ScheduleSimulation::Move(int r, SendMode mode) {
  Rank& rank = (*this)[r];
  const Step& step = rank.schedule[rank.next];
  bool starts = !rank.started;
  if (starts) Start(r, mode);
  if (!rank.received) {
    auto& line = lines_[{step.receive_from, r}];
    if (!line.empty()) {
      rank.staging = std::move(line.front().blocks);
      rank.received = true;
      (*this)[line.front().sender].sent = true;
      line.pop_front();
    }
  }
  if (!rank.sent || !rank.received) return starts;
  Finish(r);
  return true;
}

void ScheduleSimulation::Start(int r, SendMode mode) {
  Rank& rank = (*this)[r];
  const Step& step = rank.schedule[rank.next];
  CheckStep(r, step);
  bool sends = IsExchange(step) && step.send_to != Step::kNobody;
  rank.started = true;
  rank.sent = !sends || mode == SendMode::kEager;
  rank.received = !IsExchange(step) || step.receive_from == Step::kNobody;
  if (sends) lines_[{r, step.send_to}].push_back({Read(rank, step.from), r});
}

void ScheduleSimulation::Finish(int r) {
  Rank& rank = (*this)[r];
  const Step& step = rank.schedule[rank.next];
  if (!IsExchange(step)) {
    Write(rank, step.to, Read(rank, step.from));
  } else if (step.receive_from != Step::kNobody) {
    std::vector<Content> blocks = std::move(rank.staging);
    std::vector<Content> own = step.with ? Read(rank, *step.with) : std::vector<Content>();
    for (size_t i = 0; i < own.size() && i < blocks.size(); ++i) {
      blocks[i] = step.received_first ? Reduced(blocks[i], own[i], step.completes)
                                      : Reduced(own[i], blocks[i], step.completes);
    }
    Write(rank, step.to, blocks);
  }
  rank.next += 1;
  rank.started = false;
}

void ScheduleSimulation::CheckStep(int r, const Step& step) {
  if (!IsExchange(step)) {
    EXPECT_EQ(step.from.count, step.to.count);
    EXPECT_TRUE(step.from == step.to || !Overlap(step.from, step.to));
    return;
  }
  bool sends = step.send_to != Step::kNobody;
  bool receives = step.receive_from != Step::kNobody;
  EXPECT_TRUE(sends || receives);
  EXPECT_NE(step.send_to, r);
  EXPECT_LT(step.send_to, size());
  EXPECT_LT(step.receive_from, size());
  EXPECT_TRUE(receives || !step.with);
  EXPECT_TRUE(step.with || !step.completes);
  if (step.with) {
    EXPECT_EQ(step.with->count, step.to.count);
    EXPECT_TRUE(*step.with == step.to || !Overlap(*step.with, step.to));
  }
  if (sends && receives) {
    bool waits = step.with && step.from == step.to;
    EXPECT_TRUE(waits || !Overlap(step.from, step.to)) << "rank " << r << " overwrites its send";
  }
}

Content ScheduleSimulation::Reduced(const Content& first, const Content& second, bool completes) {
  EXPECT_EQ(first.divisions + second.divisions, 0) << "reduces a result";
  Content content = first;
  content.shares.insert(content.shares.end(), second.shares.begin(), second.shares.end());
  content.sum = first.sum + second.sum;
  EXPECT_EQ(completes, content.shares.size() == ranks_.size());
  if (completes) {
    content.sum /= static_cast<float>(size());
    content.divisions += 1;
  }
  return content;
}

std::map<int, Content>& ScheduleSimulation::Blocks(Rank& rank, Part::Place place) {
  switch (place) {
    case Part::Place::kInput:
      return rank.in_place ? rank.outputs : rank.inputs;
    case Part::Place::kOutput:
      return rank.outputs;
    case Part::Place::kScratch:
      return rank.scratch;
  }
  __builtin_unreachable();
}

std::vector<Content> ScheduleSimulation::Read(Rank& rank, const Part& part) {
  const std::map<int, Content>& blocks = Blocks(rank, part.place);
  std::vector<Content> contents;
  for (int i = part.index; i < part.index + part.count; ++i) {
    auto found = blocks.find(i);
    EXPECT_NE(found, blocks.end()) << "reads block " << i << " before it has data";
    contents.push_back(found == blocks.end() ? Content() : found->second);
  }
  return contents;
}

void ScheduleSimulation::Write(Rank& rank, const Part& part, const std::vector<Content>& blocks) {
  EXPECT_EQ(blocks.size(), static_cast<size_t>(part.count)) << "a message of another size";
  for (size_t i = 0; i < blocks.size(); ++i) {
    Blocks(rank, part.place)[part.index + static_cast<int>(i)] = blocks[i];
  }
}

}  // namespace rankrun::comm

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace rankrun::sim {

// Virtual time. Events of the same instant run in the order of their planning.
class Timeline {
 public:
  TimePoint now() const { return now_; }
  uint64_t events() const { return events_; }
  // Events since the time last advanced.
  uint64_t at_this_instant() const { return at_this_instant_; }
  bool empty() const { return heap_.empty(); }
  TimePoint next() const { return heap_.front().at; }

  void At(TimePoint at, std::function<void()> what) {
    heap_.push_back({std::max(at, now_), ++order_, std::move(what)});
    std::ranges::push_heap(heap_, IsLater);
  }
  void After(Duration delay, std::function<void()> what) { At(now_ + delay, std::move(what)); }

  void RunNext() {
    std::ranges::pop_heap(heap_, IsLater);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    at_this_instant_ = entry.at == now_ ? at_this_instant_ + 1 : 0;
    now_ = entry.at;
    events_ += 1;
    entry.what();
  }

 private:
  struct Entry {
    TimePoint at;
    uint64_t order;
    std::function<void()> what;
  };
  static bool IsLater(const Entry& a, const Entry& b) {
    return std::pair(a.at, a.order) > std::pair(b.at, b.order);
  }

  std::vector<Entry> heap_;
  TimePoint now_{std::chrono::hours(1)};
  uint64_t order_ = 0;
  uint64_t events_ = 0;
  uint64_t at_this_instant_ = 0;
};

}  // namespace rankrun::sim

#include "agent/coordination/store_search.h"

#include <chrono>

#include "base/net/host_port.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::milliseconds kPause{50};  // before all candidates are dialled again

}  // namespace

std::vector<StoreAction> StoreSearch::Begin(const Prepare& round, const StartRound& start,
                                            const SearchView& view) {
  start_ = start;
  is_first_attempt_ = round.attempt == 0;
  is_searching_ = false;
  if (start_.store_addresses.empty()) {
    return {StoreUnreachable{"the coordinator sent no address of the store", false}};
  }
  is_own_ = round.node_rank == 0;
  is_searching_ = true;
  has_dialled_ = false;
  next_ = 0;
  failures_.clear();
  until_ = view.now + node_timeout_;
  std::vector<StoreAction> actions = Next(view);
  if (is_own_) actions.insert(actions.begin(), AdmitClients{start_.store_allowlist});
  return actions;
}

std::vector<StoreAction> StoreSearch::Next(const SearchView& view) {
  if (!is_searching_) return {};
  if (!view.is_running) return Cancel();
  bool is_elsewhere = !is_own_ && view.local_address && !view.local_address->is_loopback();
  for (; next_ < start_.store_addresses.size(); ++next_) {
    const std::string& address = start_.store_addresses[next_];
    if (!is_elsewhere || !IsLoopback(address)) {
      return {DialStore{{address, start_.store_port}}};
    }
    AddFailure(address +
               " is a loopback address, which other hosts cannot reach (set --local-addr "
               "or another --rdzv-endpoint)");
  }
  return Repeat(view.now);
}

std::vector<StoreAction> StoreSearch::Repeat(TimePoint now) {
  if (!has_dialled_ || now >= until_) {
    is_searching_ = false;
    const std::string why = failures_.empty() ? "the coordinator sent no address of it" : failures_;
    return {StoreUnreachable{"cannot reach the store of rank 0: " + why, !is_first_attempt_}};
  }
  next_ = 0;
  failures_.clear();
  return {DialLater{kPause}};
}

std::vector<StoreAction> StoreSearch::OnConnected(const SearchView& view) {
  if (!is_searching_) return {};
  if (!view.is_running) return Cancel();
  is_searching_ = false;
  return {UseStore{{start_.store_addresses[next_], start_.store_port}}};
}

std::vector<StoreAction> StoreSearch::OnFailed(const std::string& why) {
  if (!is_searching_) return {};
  has_dialled_ = true;
  next_ += 1;
  AddFailure(why);
  return {DialLater{Duration::zero()}};
}

void StoreSearch::AddFailure(const std::string& why) {
  failures_ += (failures_.empty() ? "" : "; ") + why;
}

std::vector<StoreAction> StoreSearch::OnStop() const {
  if (!is_searching_) return {};
  return {DialLater{Duration::zero()}};
}

std::vector<StoreAction> StoreSearch::Cancel() {
  is_searching_ = false;
  return {SearchCancelled{}};
}

}  // namespace rankrun::agent

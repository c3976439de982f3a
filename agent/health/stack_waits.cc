#include "agent/health/stack_waits.h"

#include <set>
#include <utility>

#include "base/roll_call.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxStates = 3;  // of ranks outside a collective
constexpr size_t kMaxSentences = 8;

using RanksByText = std::map<std::string, std::vector<int>>;

// Returns "rank 1 VERBs" or "ranks 1, 2 VERB".
std::string Ranks(const std::vector<int>& ranks, const std::string& verb) {
  return RanksInWords(ranks) + " " + verb + (ranks.size() == 1 ? "s " : " ");
}

// The kernel shows an address that does not answer, the stacks also one that refuses.
std::vector<std::string> Dials(const std::vector<WorkerSample>& samples,
                               const std::vector<RankDigest>& digests) {
  RanksByText refused, unanswered;
  std::set<int> shown;
  for (const WorkerSample& sample : samples) {
    for (const std::string& address : sample.dials) {
      unanswered[address].push_back(sample.global_rank);
      shown.insert(sample.global_rank);
    }
  }
  for (const auto& [rank, digest] : digests) {
    if (digest.dial == Dial::kRefused) refused[digest.address].push_back(rank);
    if (digest.dial == Dial::kUnanswered && !shown.contains(rank)) {
      unanswered[digest.address].push_back(rank);
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [address, ranks] : refused) {
    sentences.push_back(Ranks(ranks, "dial") + address +
                        ", where nobody listens: each rank must use the address that rank 0 "
                        "serves; use init_method=\"env://\" (the default) under a launcher");
  }
  for (const auto& [address, ranks] : unanswered) {
    sentences.push_back(
        Ranks(ranks, "dial") + address +
        ", which does not answer: is the address right, and does a firewall let it pass?");
  }
  return sentences;
}

// Returns "rank 1, which is sleeping (clock_nanosleep), in main (train.py:9)".
std::string Outside(const std::vector<RankDigest>& outside,
                    const std::map<int, std::string>& doing) {
  RanksByText by_state;
  std::vector<int> all;
  for (const auto& [rank, digest] : outside) {
    const auto found = doing.find(rank);
    std::string state = found == doing.end() ? "elsewhere" : found->second;
    if (digest.dial != Dial::kNone) state = "dialling " + digest.address;
    if (!digest.place.empty() && digest.dial == Dial::kNone) state += ", in " + digest.place;
    by_state[state].push_back(rank);
    all.push_back(rank);
  }
  if (by_state.size() == 1) {
    return RanksInWords(all) + ", which " + (all.size() == 1 ? "is " : "are ") +
           by_state.begin()->first;
  }
  std::string text = RanksInWords(all) + ":";
  size_t shown = 0;
  for (const auto& [state, ranks] : by_state) {
    if (++shown > kMaxStates) break;
    text += (shown > 1 ? "; " : " ") + RanksInWords(ranks) +
            (ranks.size() == 1 ? " is " : " are ") + state;
  }
  return by_state.size() > kMaxStates ? text + "; and others" : text;
}

// Returns "ranks 0-2 are in all_reduce, rank 3 is in barrier".
std::string InCalls(const RanksByText& calls) {
  std::string text;
  for (const auto& [call, ranks] : calls) {
    text += (text.empty() ? "" : ", ") + RanksInWords(ranks) +
            (ranks.size() == 1 ? " is in " : " are in ") + call;
  }
  return text;
}

// Returns a sentence on the functions of torch.distributed in which ranks are; empty: none is.
std::string Collectives(const std::vector<RankDigest>& digests,
                        const std::map<int, std::string>& doing) {
  RanksByText calls;
  std::vector<RankDigest> outside;
  for (const RankDigest& rank : digests) {
    const StackDigest& digest = rank.digest;
    if (!digest.is_known) continue;
    if (digest.call.empty() || digest.dial != Dial::kNone) {
      outside.push_back(rank);
    } else {
      calls[digest.call].push_back(rank.global_rank);
    }
  }
  if (calls.empty()) return "";
  if (calls.size() == 1 && !outside.empty()) {
    return Ranks(calls.begin()->second, "wait") + "in " + calls.begin()->first + " for " +
           Outside(outside, doing);
  }
  std::string text = InCalls(calls);
  if (!outside.empty()) return text + ", and not " + Outside(outside, doing);
  return calls.size() == 1 ? text + ", and none is seen to be late" : text;
}

// The connection of a rank in a collective adds nothing, unless it leads to a store.
std::vector<std::string> PeerWaits(const std::vector<WorkerSample>& samples,
                                   const std::vector<RankDigest>& digests) {
  std::set<int> explained, in_store;
  for (const auto& [rank, digest] : digests) {
    if (!digest.call.empty()) explained.insert(rank);
    if (digest.call.find("Store") != std::string::npos) in_store.insert(rank);
  }
  RanksByText waits;
  for (const WorkerSample& sample : samples) {
    if (!sample.peer_wait) continue;
    const PeerWait& wait = *sample.peer_wait;
    if (wait.is_guess && !in_store.contains(sample.global_rank)) continue;
    const std::string peer = "rank " + std::to_string(wait.global_rank);
    if (wait.is_server) {
      waits["for an answer of " + peer + ", which serves " + wait.address].push_back(
          sample.global_rank);
    } else if (wait.global_rank != sample.global_rank && !explained.contains(sample.global_rank)) {
      waits["for data of " + peer].push_back(sample.global_rank);
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [what, ranks] : waits) sentences.push_back(Ranks(ranks, "wait") + what);
  return sentences;
}

}  // namespace

std::vector<std::string> VisibleWaits(const std::vector<WorkerSample>& samples,
                                      const std::vector<RankDigest>& digests,
                                      const std::map<int, std::string>& doing) {
  std::vector<std::string> sentences = Dials(samples, digests);
  const std::string collectives = Collectives(digests, doing);
  if (!collectives.empty()) sentences.push_back(collectives);
  for (std::string& wait : PeerWaits(samples, digests)) sentences.push_back(std::move(wait));
  if (sentences.size() > kMaxSentences) sentences.resize(kMaxSentences);
  return sentences;
}

}  // namespace rankrun::agent

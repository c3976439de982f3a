#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"

// Wishes: a text with the options of a call that all ranks make alike.
namespace rankrun::comm {

// Returns the text that a rank publishes in place of its wishes.
std::string Refusal(const Error& reason);

// Fails unless all texts are equal and none is a refusal; said[i] is that of
// ranks[i].
// Errors: kInvalid, "rank 1 refused it: <reason>"; kMismatch, "ranks 0, 2 want
// ...; rank 1 wants ...".
Result<void> CheckAlike(const std::vector<int>& ranks, const std::vector<std::string>& said);

// One call of ranks that may know different things about each other.
struct WishesCall {
  std::string key_prefix;  // of this call alone
  int rank;                // this rank
  std::vector<int> ranks;  // that make the call; must follow from the wishes
};

// Returns once all ranks of the call have published the same wishes. All ranks get
// the same result, except that a rank whose wishes differ from the first ones gets
// kMismatch, also if the call has succeeded on others.
// Errors: kMismatch, "rank 0 wants ...; rank 1 wants ..."; kTimeout with the missing
// ranks; kInvalid, another rank has refused; those of StoreBarrier.
Result<void> CompareWishes(store::Store& store, const WishesCall& call, const std::string& wishes,
                           TimePoint deadline);
// Takes the place of CompareWishes on a rank that does not make the call. Does not
// wait.
void RefuseWishes(store::Store& store, const WishesCall& call, const Error& reason);

}  // namespace rankrun::comm

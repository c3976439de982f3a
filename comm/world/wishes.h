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

// One call of CompareWishes.
struct WishesCall {
  std::string key_prefix;  // of this call alone
  int rank;                // this rank
  std::vector<int> ranks;  // all that this rank waits for
};

// Publishes the wishes of this rank, waits for those of `call.ranks` and compares
// them. Other ranks may wait for others.
// Errors: as CheckAlike; kTimeout with the missing ranks; those of the store.
Result<void> CompareWishes(store::Store& store, const WishesCall& call, const std::string& wishes,
                           TimePoint deadline);
// Publishes only that this rank does not make the call, because of `reason`.
void RefuseWishes(store::Store& store, const WishesCall& call, const Error& reason);
// Deletes the text of this rank, which no rank reads after its next call.
void ForgetWishes(store::Store& store, const WishesCall& call);

}  // namespace rankrun::comm

#include "comm/rpc/owned_values.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>

namespace rankrun::comm::rpc {
namespace {

constexpr ValueId kValue{.creator = 1, .number = 7};

HoldId HoldOf(int holder, uint64_t number = 1) {
  return {.holder = holder, .issuer = 1, .number = number};
}

TEST(OwnedValuesTest, TheLastHoldFreesTheValue) {
  OwnedValues values;
  auto promise = values.Make(kValue, HoldOf(1));
  ASSERT_TRUE(promise);
  auto object = std::make_shared<int>(5);
  std::weak_ptr<int> seen = object;
  promise->SetValue(std::move(object));
  *promise = Promise<OwnedValues::Value>();
  ASSERT_TRUE(values.Hold(kValue, HoldOf(2)));
  ASSERT_TRUE(values.Hold(kValue, HoldOf(2, 2)));
  values.Drop(kValue, HoldOf(1));
  values.Drop(kValue, HoldOf(2));
  values.Drop(kValue, HoldOf(2));  // twice counts once
  EXPECT_FALSE(seen.expired());
  EXPECT_EQ(*static_cast<int*>(values.Find(kValue)->Wait().get()), 5);
  values.Drop(kValue, HoldOf(2, 2));
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(values.size(), 0U);
  EXPECT_EQ(values.Find(kValue).error().message, "there is no value 7 of worker 1, or no more");
  EXPECT_FALSE(values.Hold(kValue, HoldOf(3)));
  values.Drop(kValue, HoldOf(3));
}

TEST(OwnedValuesTest, AnIdIsMadeOnce) {
  OwnedValues values;
  ASSERT_TRUE(values.Make(kValue, HoldOf(1)));
  EXPECT_EQ(values.Make(kValue, HoldOf(2)).error().message,
            "there is a value 7 of worker 1 already");
}

TEST(OwnedValuesTest, ALostWorkerHoldsNothing) {
  OwnedValues values;
  constexpr ValueId kOther{.creator = 2, .number = 7};
  ASSERT_TRUE(values.Make(kValue, HoldOf(1)));
  ASSERT_TRUE(values.Make(kOther, HoldOf(2)));
  ASSERT_TRUE(values.Hold(kOther, HoldOf(1, 2)));
  ASSERT_TRUE(values.Hold(kOther, HoldOf(2, 3)));
  values.DropAllOf(2);
  EXPECT_EQ(values.size(), 2U);
  values.DropAllOf(1);
  EXPECT_EQ(values.size(), 0U);
}

TEST(OwnedValuesTest, AValueThatIsDroppedBeforeItIsThereIsABrokenPromise) {
  OwnedValues values;
  std::optional<Future<OwnedValues::Value>> future;
  {
    auto promise = values.Make(kValue, HoldOf(1));
    future = *values.Find(kValue);
  }
  EXPECT_FALSE(future->done());
  values.Drop(kValue, HoldOf(1));
  EXPECT_THROW(future->Wait(), std::future_error);
}

}  // namespace
}  // namespace rankrun::comm::rpc

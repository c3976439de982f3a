#include "comm/core/throw.h"

#include <gtest/gtest.h>

#include <typeinfo>

#include <rankrun/dist_error.h>

namespace rankrun::comm {
namespace {

const std::type_info& ThrownFor(ErrorCode code, void (*thrower)(const Error&) = Throw) {
  try {
    thrower({code, "AllReduce #1: why"});
    return typeid(void);
  } catch (const DistError& error) {
    EXPECT_STREQ(error.what(), "AllReduce #1: why");
    return typeid(error);
  }
}

TEST(ThrowTest, EveryCodeHasItsKind) {
  EXPECT_EQ(ThrownFor(ErrorCode::kInvalid), typeid(DistError));
  EXPECT_EQ(ThrownFor(ErrorCode::kTimeout), typeid(DistTimeoutError));
  EXPECT_EQ(ThrownFor(ErrorCode::kPeerLost), typeid(DistNetworkError));
  EXPECT_EQ(ThrownFor(ErrorCode::kCancelled), typeid(DistNetworkError));
  EXPECT_EQ(ThrownFor(ErrorCode::kProtocol), typeid(DistStoreError));
  EXPECT_EQ(ThrownFor(ErrorCode::kSystem), typeid(DistBackendError));
  EXPECT_EQ(ThrownFor(ErrorCode::kNotFound), typeid(DistBackendError));
}

TEST(ThrowTest, EveryCodeOfAStoreHasItsKind) {
  EXPECT_EQ(ThrownFor(ErrorCode::kInvalid, ThrowStoreError), typeid(DistError));
  EXPECT_EQ(ThrownFor(ErrorCode::kTimeout, ThrowStoreError), typeid(DistStoreError));
  EXPECT_EQ(ThrownFor(ErrorCode::kPeerLost, ThrowStoreError), typeid(DistNetworkError));
  EXPECT_EQ(ThrownFor(ErrorCode::kCancelled, ThrowStoreError), typeid(DistNetworkError));
  EXPECT_EQ(ThrownFor(ErrorCode::kProtocol, ThrowStoreError), typeid(DistStoreError));
  EXPECT_EQ(ThrownFor(ErrorCode::kNotFound, ThrowStoreError), typeid(DistStoreError));
  EXPECT_THROW(UnwrapStore(Result<int>(Error{ErrorCode::kTimeout, ""})), DistStoreError);
  EXPECT_THROW(UnwrapStore(Result<void>(Error{ErrorCode::kTimeout, ""})), DistStoreError);
  EXPECT_EQ(UnwrapStore(Result<int>(7)), 7);
}

TEST(ThrowTest, ATimeoutIsABackendErrorAndARuntimeError) {
  EXPECT_THROW(Throw({ErrorCode::kTimeout, ""}), DistBackendError);
  EXPECT_THROW(Throw({ErrorCode::kTimeout, ""}), std::runtime_error);
}

TEST(ThrowTest, UnwrapReturnsTheValueOrThrows) {
  EXPECT_EQ(Unwrap(Result<int>(7)), 7);
  EXPECT_NO_THROW(Unwrap(Result<void>()));
  EXPECT_THROW(Unwrap(Result<int>(Error{ErrorCode::kProtocol, ""})), DistStoreError);
  EXPECT_THROW(Unwrap(Result<void>(Error{ErrorCode::kPeerLost, ""})), DistNetworkError);
}

}  // namespace
}  // namespace rankrun::comm

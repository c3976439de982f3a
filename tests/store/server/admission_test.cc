#include "store/server/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankrun::store {
namespace {

using testing::HasSubstr;

SocketAddress Peer(const std::string& host, uint16_t port = 1) {
  return *SocketAddress::FromNumeric(host, port);
}

std::string WhyNot(Admission& admission, const std::string& host) {
  auto entered = admission.Enter(Peer(host));
  return entered ? "" : entered.error().message;
}

TEST(AdmissionTest, WithoutRangesEveryAddressIsAdmitted) {
  Admission admission({});
  EXPECT_EQ(WhyNot(admission, "10.0.0.1"), "");
  EXPECT_EQ(WhyNot(admission, "fd00::1"), "");
  EXPECT_EQ(admission.connections(), 2u);
}

TEST(AdmissionTest, OnlyAddressesInTheRangesAreAdmitted) {
  Admission admission(
      {.allowed = {*AddressRange::Parse("10.0.0.0/8"), *AddressRange::Parse("::1")}});
  EXPECT_EQ(WhyNot(admission, "10.9.9.9"), "");
  EXPECT_EQ(WhyNot(admission, "::1"), "");
  EXPECT_EQ(WhyNot(admission, "::ffff:10.1.1.1"), "");
  EXPECT_THAT(WhyNot(admission, "11.0.0.1"), HasSubstr("none of the ranges"));
  EXPECT_EQ(admission.connections(), 3u);
}

TEST(AdmissionTest, TheRangesCanBeReplaced) {
  Admission admission({.allowed = {*AddressRange::Parse("10.0.0.1")}});
  EXPECT_EQ(WhyNot(admission, "::ffff:10.0.0.1"), "");
  EXPECT_NE(WhyNot(admission, "10.0.0.2"), "");
  admission.Allow({*AddressRange::Parse("10.0.0.2"), *AddressRange::Parse("fd00::/16")});
  EXPECT_NE(WhyNot(admission, "10.0.0.1"), "");
  EXPECT_EQ(WhyNot(admission, "10.0.0.2"), "");
  EXPECT_EQ(WhyNot(admission, "fd00::1"), "");
  admission.Allow({});
  EXPECT_EQ(WhyNot(admission, "10.0.0.1"), "");
}

TEST(AdmissionTest, TheNumberOfConnectionsIsLimited) {
  Admission admission({.allowed = {}, .connections = 2});
  EXPECT_EQ(WhyNot(admission, "10.0.0.1"), "");
  EXPECT_EQ(WhyNot(admission, "10.0.0.2"), "");
  EXPECT_THAT(WhyNot(admission, "10.0.0.3"), HasSubstr("there are 2 connections already"));
  admission.Leave(Peer("10.0.0.1"), /*silent=*/true);
  EXPECT_EQ(WhyNot(admission, "10.0.0.3"), "");
}

TEST(AdmissionTest, SilentConnectionsCountAgainstTheirAddress) {
  Admission admission({.allowed = {}, .connections = 100, .silent_per_address = 2});
  EXPECT_EQ(WhyNot(admission, "10.0.0.1"), "");
  EXPECT_EQ(WhyNot(admission, "10.0.0.1"), "");
  EXPECT_THAT(WhyNot(admission, "10.0.0.1"), HasSubstr("2 connections already that have sent"));
  EXPECT_EQ(WhyNot(admission, "10.0.0.2"), "");
  admission.MarkActive(Peer("10.0.0.1", 7));
  EXPECT_EQ(WhyNot(admission, "10.0.0.1"), "");
  admission.Leave(Peer("10.0.0.1"), /*silent=*/true);
  EXPECT_EQ(WhyNot(admission, "10.0.0.1"), "");
  admission.Leave(Peer("10.0.0.1"), /*silent=*/false);  // the active one
  EXPECT_THAT(WhyNot(admission, "10.0.0.1"), HasSubstr("that have sent nothing"));
}

}  // namespace
}  // namespace rankrun::store

#include "agent/coordination/store_allowlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace rankrun::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Texts = std::vector<std::string>;

SocketAddress At(const std::string& host) { return *SocketAddress::FromNumeric(host, 5); }

bool Admits(const std::vector<AddressRange>& ranges, const std::string& host) {
  return std::ranges::any_of(ranges,
                             [&](const AddressRange& range) { return range.Contains(At(host)); });
}

TEST(StoreAllowlistTest, ANodeMayConnectFromAnyOfItsAddresses) {
  Texts own{"10.0.0.1", "10.1.0.1", "fd00::1", "127.0.0.1"};
  EXPECT_EQ(RelevantAddresses(own, At("10.1.0.1").Bytes()), own);
  EXPECT_EQ(RelevantAddresses(own, At("fd00::1").Bytes()), own);
  EXPECT_EQ(RelevantAddresses(own, At("127.0.0.1").Bytes()), own);
  EXPECT_EQ(RelevantAddresses(own, At("::ffff:10.0.0.1").Bytes()), own);
}

TEST(StoreAllowlistTest, AddressesBehindNatAreOfNoUse) {
  EXPECT_THAT(RelevantAddresses({"172.17.0.2"}, At("10.0.0.1").Bytes()), IsEmpty());
  EXPECT_THAT(RelevantAddresses({}, At("10.0.0.1").Bytes()), IsEmpty());
}

TEST(StoreAllowlistTest, AListWithAnInvalidAddressIsOfNoUse) {
  EXPECT_THAT(RelevantAddresses({"10.0.0.1", "n1"}, At("10.0.0.1").Bytes()), IsEmpty());
  EXPECT_THAT(RelevantAddresses({"10.0.0.1", "0.0.0.0/0"}, At("10.0.0.1").Bytes()), IsEmpty());
}

TEST(StoreAllowlistTest, TooManyAddressesAreOfNoUse) {
  Texts own(64, "10.0.0.1");
  EXPECT_EQ(RelevantAddresses(own, At("10.0.0.1").Bytes()), own);
  own.emplace_back("10.0.0.1");
  EXPECT_THAT(RelevantAddresses(own, At("10.0.0.1").Bytes()), IsEmpty());
}

TEST(StoreAllowlistTest, EachAddressIsListedOnce) {
  Texts one{"127.0.0.1", "10.0.0.1"}, other{"127.0.0.1", "10.0.0.2"};
  EXPECT_THAT(AddressesOfAll({&one, &other}), ElementsAre("10.0.0.1", "10.0.0.2", "127.0.0.1"));
}

TEST(StoreAllowlistTest, OneUnknownNodeOpensTheStoreToAll) {
  Texts one{"10.0.0.1"}, unknown;
  EXPECT_THAT(AddressesOfAll({&one, &unknown}), IsEmpty());
  EXPECT_THAT(ClientRanges({}, {"10.0.0.1"}), IsEmpty());
  EXPECT_THAT(ClientRanges({"10.0.0.1"}, {}), IsEmpty());
  EXPECT_THAT(ClientRanges({"10.0.0.1", "?"}, {"10.0.0.2"}), IsEmpty());
}

TEST(StoreAllowlistTest, AddressesThatDoNotFitIntoAMessageOpenTheStoreToAll) {
  std::vector<Texts> nodes;
  for (int i = 0; i < 30'000; ++i) nodes.push_back({"fd00::aaaa:bbbb:" + std::to_string(i)});
  std::vector<const Texts*> all;
  for (size_t i = 0; i < 10'000; ++i) all.push_back(&nodes[i]);
  EXPECT_EQ(AddressesOfAll(all).size(), 10'000u);
  for (size_t i = 10'000; i < nodes.size(); ++i) all.push_back(&nodes[i]);
  EXPECT_THAT(AddressesOfAll(all), IsEmpty());
}

TEST(StoreAllowlistTest, ClientsAndTheStoresHostAreAdmitted) {
  auto ranges = ClientRanges({"10.0.0.2", "fe80::2"}, {"10.0.0.1"});
  for (const char* host : {"10.0.0.2", "::ffff:10.0.0.2", "fe80::2", "10.0.0.1", "127.0.0.1",
                           "127.0.1.1", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(Admits(ranges, host)) << host;
  }
  for (const char* host : {"10.0.0.3", "fe80::3", "::ffff:10.0.0.3"}) {
    EXPECT_FALSE(Admits(ranges, host)) << host;
  }
}

}  // namespace
}  // namespace rankrun::agent

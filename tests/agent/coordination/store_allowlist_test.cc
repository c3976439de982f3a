#include "agent/coordination/store_allowlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace rankrun::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

using Texts = std::vector<std::string>;

SocketAddress At(const std::string& host) { return *SocketAddress::FromNumeric(host, 5); }

bool Admits(const std::vector<AddressRange>& ranges, const std::string& host) {
  return std::ranges::any_of(ranges,
                             [&](const AddressRange& range) { return range.Contains(At(host)); });
}

TEST(StoreAllowlistTest, ANodeMayConnectFromAnyOfItsAddresses) {
  Texts own{"10.0.0.1", "10.1.0.1", "fd00::1", "127.0.0.1"};
  for (const char* peer : {"10.0.0.1", "10.1.0.1", "fd00::1", "127.0.0.1", "::ffff:10.0.0.1"}) {
    NodeAddresses relevant = RelevantAddresses(own, At(peer));
    EXPECT_THAT(relevant.addresses, UnorderedElementsAreArray(own)) << peer;
    EXPECT_EQ(At(relevant.addresses.front()).Bytes(), At(peer).Bytes());
    EXPECT_EQ(relevant.problem, "");
  }
}

TEST(StoreAllowlistTest, OfANodeBehindNatTheAddressOfTheConnectionCounts) {
  for (const Texts& own : {Texts{"172.17.0.2"}, Texts{}}) {
    NodeAddresses relevant = RelevantAddresses(own, At("10.0.0.1"));
    EXPECT_THAT(relevant.addresses, ElementsAre("10.0.0.1"));
    EXPECT_THAT(relevant.problem, HasSubstr("NAT"));
  }
}

TEST(StoreAllowlistTest, ANodeThatDialsAGatewayMayConnectFromItsOwnAddresses) {
  NodeAddresses relevant = RelevantAddresses({"10.0.0.7", "127.0.0.1"}, At("10.0.0.1"), "10.0.0.1");
  EXPECT_THAT(relevant.addresses, ElementsAre("10.0.0.1", "10.0.0.7", "127.0.0.1"));
  EXPECT_EQ(relevant.problem, "");
  for (const char* dialled : {"", "10.0.0.2", "gateway"}) {
    EXPECT_THAT(RelevantAddresses({"10.0.0.7"}, At("10.0.0.1"), dialled).problem, HasSubstr("NAT"));
  }
  EXPECT_THAT(RelevantAddresses({}, At("10.0.0.1"), "10.0.0.1").problem, HasSubstr("NAT"));
}

TEST(StoreAllowlistTest, AListWithAnInvalidAddressIsOfNoUse) {
  for (const char* invalid : {"n1", "0.0.0.0/0"}) {
    NodeAddresses relevant = RelevantAddresses({"10.0.0.1", invalid}, At("10.0.0.1"));
    EXPECT_THAT(relevant.addresses, ElementsAre("10.0.0.1"));
    EXPECT_EQ(relevant.problem, "reports an invalid address");
  }
}

TEST(StoreAllowlistTest, TooManyAddressesAreOfNoUse) {
  Texts own(64, "10.0.0.1");
  EXPECT_EQ(RelevantAddresses(own, At("10.0.0.1")).addresses, own);
  own.emplace_back("10.0.0.1");
  NodeAddresses relevant = RelevantAddresses(own, At("10.0.0.1"));
  EXPECT_THAT(relevant.addresses, ElementsAre("10.0.0.1"));
  EXPECT_EQ(relevant.problem, "has 65 addresses, more than 64");
}

TEST(StoreAllowlistTest, EachAddressIsListedOnce) {
  Texts one{"127.0.0.1", "10.0.0.1"}, other{"127.0.0.1", "10.0.0.2"};
  EXPECT_THAT(AddressesOfAll({&one, &other}), ElementsAre("10.0.0.1", "10.0.0.2", "127.0.0.1"));
}

TEST(StoreAllowlistTest, OneUnknownNodeOpensTheStoreToAll) {
  Texts one{"10.0.0.1"}, unknown;
  EXPECT_THAT(AddressesOfAll({&one, &unknown}), IsEmpty());
  EXPECT_THAT(ClientRanges({}, {"10.0.0.1"}), IsEmpty());
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

TEST(StoreAllowlistTest, OfLargeJobsOneAddressOfEachNodeCounts) {
  std::vector<Texts> nodes;
  for (int i = 0; i < 10'000; ++i) {
    std::string tail = std::to_string(i);
    nodes.push_back({"fd00::" + tail, "fd00:1::" + tail, "fd00:2::" + tail, "fd00:3::" + tail});
  }
  std::vector<const Texts*> all;
  for (const Texts& node : nodes) all.push_back(&node);
  auto addresses = AddressesOfAll(all);
  EXPECT_EQ(addresses.size(), 10'000u);
  EXPECT_THAT(addresses, Contains("fd00::9999"));
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

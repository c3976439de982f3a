#include "store/engine/sip_hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "store/engine/name_table.h"

namespace rankrun::store::engine {
namespace {

// The example of the paper: key 00 01 .. 0f, input 00 01 .. 0e.
TEST(SipHashTest, ItIsThatOfThePaper) {
  const SipKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string input(15, '\0');
  std::iota(input.begin(), input.end(), char{0});
  EXPECT_EQ((SipHash<2, 4>(key, input)), 0xa129ca6149be45e5);
  EXPECT_EQ((SipHash<2, 4>(key, "")), 0x726fdb47dd0e0e31);
}

TEST(SipHashTest, EachTableHasAKeyOfItsOwn) {
  NameTable one, other;
  EXPECT_NE(one.FindOrAdd("key").first->hash, other.FindOrAdd("key").first->hash);
}

}  // namespace
}  // namespace rankrun::store::engine

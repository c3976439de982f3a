#include "agent/report/pickle.h"

#include <gmock/gmock.h>

#include "tests/agent/report/pickled.h"

namespace rankrun::agent {
namespace {

using namespace std::string_view_literals;
using Kind = PickleValue::Kind;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& bytes) {
  auto pickle = Pickle::Read(bytes);
  return pickle ? "none" : pickle.error().message;
}

// {'a': [1, -2, 300, 70000, -2**40, 1.5, None, True, False], 't': (1, 2, 3, 4), 'b': b'xy',
// 's': 'é', 'again': the same list}, as Python writes it.
constexpr std::string_view kProtocol3 =
    "\200\003\175\161\000\050\130\001\000\000\000\141\161\001\135\161\002\050\113\001\112\376\377"
    "\377"
    "\377\115\054\001\112\160\021\001\000\212\006\000\000\000\000\000\377\107\077\370\000\000\000"
    "\000"
    "\000\000\116\210\211\145\130\001\000\000\000\164\161\003\050\113\001\113\002\113\003\113\004"
    "\164"
    "\161\004\130\001\000\000\000\142\161\005\103\002\170\171\161\006\130\001\000\000\000\163\161"
    "\007"
    "\130\002\000\000\000\303\251\161\010\130\005\000\000\000\141\147\141\151\156\161\011\150\002"
    "\165"
    "\056"sv;
constexpr std::string_view kProtocol4 =
    "\200\004\225\133\000\000\000\000\000\000\000\175\224\050\214\001\141\224\135\224\050\113\001"
    "\112"
    "\376\377\377\377\115\054\001\112\160\021\001\000\212\006\000\000\000\000\000\377\107\077\370"
    "\000"
    "\000\000\000\000\000\116\210\211\145\214\001\164\224\050\113\001\113\002\113\003\113\004\164"
    "\224"
    "\214\001\142\224\103\002\170\171\224\214\001\163\224\214\002\303\251\224\214\005\141\147\141"
    "\151"
    "\156\224\150\002\165\056"sv;

TEST(PickleTest, ReadsPlainDataOfEachProtocol) {
  for (std::string_view bytes : {kProtocol3, kProtocol4}) {
    auto pickle = Pickle::Read(bytes);
    ASSERT_TRUE(pickle) << pickle.error().message;
    const PickleValue* list = pickle->root().Find("a", Kind::kList);
    ASSERT_NE(list, nullptr);
    ASSERT_EQ(list->items.size(), 9u);
    const int64_t numbers[] = {1, -2, 300, 70'000, -(int64_t{1} << 40)};
    for (size_t i = 0; i < std::size(numbers); ++i) {
      EXPECT_EQ(list->items[i]->kind, Kind::kInt);
      EXPECT_EQ(list->items[i]->number, numbers[i]);
    }
    EXPECT_EQ(list->items[5]->real, 1.5);
    EXPECT_EQ(list->items[6]->kind, Kind::kNone);
    EXPECT_EQ(list->items[7]->number, 1);
    EXPECT_EQ(list->items[8]->number, 0);
    EXPECT_EQ(pickle->root().Find("t")->items.size(), 4u);
    EXPECT_EQ(pickle->root().Find("b")->text, "xy");
    EXPECT_EQ(pickle->root().Find("s")->text, "é");
    EXPECT_EQ(pickle->root().Find("again"), list);
    EXPECT_EQ(pickle->root().Find("none"), nullptr);
    EXPECT_EQ(pickle->root().Find("a", Kind::kInt), nullptr);
  }
}

TEST(PickleTest, RefusesEverythingThatRuns) {
  EXPECT_THAT(ErrorOf("\x80\x02"
                      "cos\nsystem\n."),
              HasSubstr("byte 2: opcode 99 is not one of"));
}

TEST(PickleTest, EveryTruncationIsAnError) {
  for (std::string_view bytes : {kProtocol3, kProtocol4}) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(Pickle::Read(bytes.substr(0, size))) << size;
    }
  }
}

TEST(PickleTest, NamesWhatIsWrong) {
  EXPECT_THAT(ErrorOf("K"), HasSubstr("the pickle is cut off"));
  EXPECT_THAT(ErrorOf("."), HasSubstr("a value is missing"));
  EXPECT_THAT(ErrorOf("K\1e."), HasSubstr("a mark is missing"));
  EXPECT_THAT(ErrorOf("K\1(K\2e."), HasSubstr("a list or dict for values is missing"));
  EXPECT_THAT(ErrorOf("}(K\1u."), HasSubstr("a list or dict for values is missing"));
  EXPECT_THAT(ErrorOf("h\7."), HasSubstr("a value that it does not have"));
  EXPECT_THAT(ErrorOf("\x8a\x09"
                      "123456789."),
              HasSubstr("more than 8 bytes"));
  EXPECT_THAT(ErrorOf("(\x85."), HasSubstr("a value is missing")) << "below the mark";
}

TEST(PickleTest, AValueMayContainItself) {
  auto pickle = Pickle::Read(std::string("]q\0h\0a.", 7));
  ASSERT_TRUE(pickle) << pickle.error().message;
  EXPECT_EQ(pickle->root().items.at(0), &pickle->root());
}

}  // namespace
}  // namespace rankrun::agent

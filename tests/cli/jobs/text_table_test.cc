#include "cli/jobs/text_table.h"

#include <gtest/gtest.h>

namespace rankrun::cli {
namespace {

TEST(TextTableTest, ColumnsAreAsWideAsTheirTexts) {
  TextTable table({{.title = "RANK"}, {.title = "STATE"}, {.title = "LAST"}});
  table.Add({"0", "running", "a"});
  table.Add({"10", "x", ""});
  EXPECT_EQ(table.Text(80),
            "RANK  STATE    LAST\n"
            "0     running  a\n"
            "10    x\n");
}

TEST(TextTableTest, ATableThatIsTooWideIsCutFromTheRight) {
  TextTable table({{.title = "A"}, {.title = "B", .least = 5}, {.title = "C", .least = 5}});
  table.Add({"1", "0123456789", "0123456789"});
  EXPECT_EQ(table.Text(23),
            "A  B           C\n"
            "1  0123456789  01234...\n");
  EXPECT_EQ(table.Text(17),
            "A  B        C\n"
            "1  0123...  01...\n");
}

TEST(TextTableTest, NoLineIsWiderThanTheTerminal) {
  TextTable table({{.title = "A"}, {.title = "B", .least = 5}, {.title = "C", .least = 5}});
  table.Add({"123456", "0123456789", "0123456789"});
  for (size_t width = 4; width < 40; ++width) {
    std::string text = table.Text(width);
    for (size_t begin = 0; begin < text.size();) {
      size_t end = text.find('\n', begin);
      EXPECT_LE(end - begin, width) << text;
      begin = end + 1;
    }
  }
}

TEST(TextTableTest, HiddenColumnsTakeNoRoom) {
  TextTable table({{.title = "A"}, {.title = "B", .is_hidden = true}, {.title = "C"}});
  table.Add({"1", "2", "3"});
  EXPECT_EQ(table.Text(80), "A  C\n1  3\n");
}

TEST(TextTableTest, TextsAreEscapedAndCharactersCounted) {
  TextTable table({{.title = "A"}, {.title = "B"}});
  table.Add({"\u00e4\u20ac", "x\n\x1b[2J"});
  EXPECT_EQ(table.Text(80), "A   B\n\u00e4\u20ac  x\\n\\x1b[2J\n");
}

}  // namespace
}  // namespace rankrun::cli

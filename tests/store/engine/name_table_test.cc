#include "store/engine/name_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace rankrun::store::engine {
namespace {

std::map<std::string, std::string> ContentOf(const NameTable& table) {
  std::map<std::string, std::string> content;
  table.ForEach([&](const Name& name) { content[name.key] = name.value.value_or("none"); });
  return content;
}

TEST(NameTableTest, FindsAddedNamesOnly) {
  NameTable table;
  EXPECT_EQ(table.Find("a"), nullptr);
  auto [a, is_new] = table.FindOrAdd("a");
  EXPECT_TRUE(is_new);
  EXPECT_EQ(a->key, "a");
  EXPECT_EQ(table.FindOrAdd("a"), std::pair(a, false));
  EXPECT_EQ(table.Find("a"), a);
  EXPECT_EQ(table.Find(""), nullptr);
  EXPECT_EQ(table.Find({"a\0", 2}), nullptr);
  EXPECT_EQ(table.size(), 1u);
}

TEST(NameTableTest, NamesStayWhereTheyAreWhileItGrows) {
  NameTable table;
  std::vector<Name*> names;
  for (int i = 0; i < 10'000; ++i) names.push_back(table.FindOrAdd(std::to_string(i)).first);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(table.Find(std::to_string(i)), names[size_t(i)]);
  EXPECT_EQ(table.size(), names.size());
}

TEST(NameTableTest, AClearedTableIsEmptyAndUsable) {
  NameTable table;
  for (int i = 0; i < 100; ++i) table.FindOrAdd(std::to_string(i));
  table.Clear();
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.Find("7"), nullptr);
  EXPECT_TRUE(table.FindOrAdd("7").second);
  EXPECT_EQ(table.Find("7")->key, "7");
}

TEST(NameTableTest, AgreesWithAMapOnRandomOperations) {
  std::mt19937 random(1);
  NameTable table;
  std::map<std::string, std::string> map;
  for (int step = 0; step < 20'000; ++step) {
    std::string key = std::to_string(random() % 500);
    Name* found = table.Find(key);
    ASSERT_EQ(found != nullptr, map.contains(key));
    if (random() % 3 == 0) {
      if (found != nullptr) table.Erase(*found);
      map.erase(key);
    } else {
      table.FindOrAdd(std::string(key)).first->value = map[key] = std::to_string(step);
    }
    ASSERT_EQ(table.size(), map.size());
  }
  EXPECT_EQ(ContentOf(table), map);
}

}  // namespace
}  // namespace rankrun::store::engine

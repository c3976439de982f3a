#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankrun::cli {

// A table for a terminal: columns as wide as their texts, two spaces apart. Every text is escaped.
// Pure.
class TextTable {
 public:
  struct Column {
    std::string_view title;
    size_t least = 0;        // columns that are left of it when the table is too wide; 0: never cut
    size_t most = SIZE_MAX;  // longer texts are cut
    bool is_hidden = false;
  };
  using Row = std::vector<std::string>;  // one text for each column

  explicit TextTable(std::vector<Column> columns);

  void Add(const Row& row);

  // Returns the lines. If they do not fit `width`, cuts columns with `least`, the last one first.
  std::string Text(size_t width) const;

 private:
  std::vector<size_t> Widths(size_t width) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;  // the titles first
};

}  // namespace rankrun::cli

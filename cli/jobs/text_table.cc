#include "cli/jobs/text_table.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/printable.h"

namespace rankrun::cli {
namespace {

constexpr size_t kGap = 2;

// Columns of a text that has been escaped: each character of UTF-8 takes one.
size_t WidthOf(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  Row titles;
  for (const Column& column : columns_) titles.emplace_back(column.title);
  rows_.push_back(std::move(titles));
}

void TextTable::Add(const Row& row) {
  Row safe;
  for (const std::string& text : row) safe.push_back(OneLine(text));
  rows_.push_back(std::move(safe));
}

std::vector<size_t> TextTable::Widths(size_t width) const {
  std::vector<size_t> widths(columns_.size(), 0);
  size_t total = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].is_hidden) continue;
    for (const Row& row : rows_) widths[i] = std::max(widths[i], WidthOf(row[i]));
    widths[i] = std::min(widths[i], columns_[i].most);
    total += widths[i] + (total == 0 ? 0 : kGap);
  }
  for (size_t i = columns_.size(); i-- > 0 && total > width;) {
    if (columns_[i].least == 0 || widths[i] <= columns_[i].least) continue;
    size_t cut = std::min(total - width, widths[i] - columns_[i].least);
    widths[i] -= cut;
    total -= cut;
  }
  return widths;
}

std::string TextTable::Text(size_t width) const {
  std::vector<size_t> widths = Widths(width);
  std::string text;
  for (const Row& row : rows_) {
    std::string line;
    size_t at = 0;  // column where the next cell begins
    for (size_t i = 0; i < row.size(); ++i) {
      if (columns_[i].is_hidden) continue;
      line.append(at - std::min(at, WidthOf(line)), ' ');
      line += OneLine(row[i], widths[i]);
      at += widths[i] + kGap;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += (WidthOf(line) > width ? OneLine(line, width) : line) + "\n";
  }
  return text;
}

}  // namespace rankrun::cli

#include "launcher/scheduler/slurm_grammar.h"

#include <algorithm>
#include <cstdint>

#include "base/parse_number.h"
#include "launcher/flags/text.h"

namespace rankrun::launcher {
namespace {

constexpr size_t kMaxNodes = 100'000;
constexpr size_t kMaxDigits = 18;

using Names = std::vector<std::string>;

Error Invalid(const std::string& text) { return {ErrorCode::kInvalid, text}; }

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= kMaxDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool IsNameCharacter(char c) {
  bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

// Adds the numbers of "01-03" or "7", padded with zeros to the width of the
// first.
Result<void> AddRange(std::string_view range, Names& numbers) {
  size_t dash = std::min(range.find('-'), range.size());
  std::string_view first = range.substr(0, dash);
  std::string_view last = dash == range.size() ? first : range.substr(dash + 1);
  if (!IsNumber(first) || !IsNumber(last)) {
    return Invalid("want numbers or ranges of them in brackets" + Got(range));
  }
  uint64_t begin = *ParseNumber<uint64_t>(first);
  uint64_t end = *ParseNumber<uint64_t>(last);
  if (begin > end) return Invalid("the range ends before it begins" + Got(range));
  if (end - begin >= kMaxNodes) return Invalid("more than 100000 nodes" + Got(range));
  for (uint64_t number = begin; number <= end; ++number) {
    std::string text = std::to_string(number);
    text.insert(0, first.size() - std::min(first.size(), text.size()), '0');
    numbers.push_back(std::move(text));
  }
  return {};
}

// Appends each of `endings` to each of `names`.
Result<void> Extend(Names& names, const Names& endings) {
  if (names.size() * endings.size() > kMaxNodes) return Invalid("more than 100000 nodes");
  Names longer;
  for (const std::string& name : names) {
    for (const std::string& ending : endings) longer.push_back(name + ending);
  }
  names = std::move(longer);
  return {};
}

// Returns the names of one part: "r[1-2]n[1-4]-ib".
Result<Names> Expand(std::string_view part) {
  Names names = {""};
  while (!part.empty()) {
    size_t open = std::min(part.find('['), part.size());
    std::string_view plain = part.substr(0, open);
    if (!std::ranges::all_of(plain, IsNameCharacter))
      return Invalid("this is not the name of a node");
    if (auto extended = Extend(names, {std::string(plain)}); !extended) {
      return std::move(extended).error();
    }
    if (open == part.size()) break;
    size_t close = part.find(']', open);
    if (close == part.npos) return Invalid("a bracket is not closed");
    Names numbers;
    for (std::string_view range : SplitAtCommas(part.substr(open + 1, close - open - 1))) {
      if (auto added = AddRange(range, numbers); !added) return std::move(added).error();
    }
    if (auto extended = Extend(names, numbers); !extended) return std::move(extended).error();
    part.remove_prefix(close + 1);
  }
  return names;
}

// Returns the index of the first comma outside of brackets, or the size.
size_t EndOfPart(std::string_view text) {
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') inside = true;
    if (text[i] == ']') inside = false;
    if (text[i] == ',' && !inside) return i;
  }
  return text.size();
}

// Returns 4 for "gpu:a100:4(S:0-1)".
std::optional<int> GpusOf(std::string_view part) {
  part = part.substr(0, part.find('('));
  size_t colon = part.rfind(':');
  if (colon != part.npos) part.remove_prefix(colon + 1);
  auto count = ParseNumber<int>(part);
  return count && *count >= 0 && *count <= 10'000 ? count : std::nullopt;
}

}  // namespace

Result<Names> ParseNodeList(std::string_view text) {
  Names names;
  std::string_view left = text;
  for (;;) {
    size_t end = EndOfPart(left);
    if (end == 0) return Invalid("want names of nodes with commas between" + Got(text));
    auto expanded = Expand(left.substr(0, end));
    if (!expanded) return Invalid(expanded.error().message + " in \"" + std::string(text) + "\"");
    names.insert(names.end(), expanded->begin(), expanded->end());
    if (names.size() > kMaxNodes) return Invalid("more than 100000 nodes" + Got(text));
    if (end == left.size()) return names;
    left.remove_prefix(end + 1);
  }
}

std::optional<std::vector<int>> ParseCounts(std::string_view text) {
  std::vector<int> counts;
  for (std::string_view part : SplitAtCommas(text)) {
    size_t bracket = part.find("(x");
    auto count = ParseNumber<int>(part.substr(0, bracket));
    std::optional<size_t> times = 1;
    if (bracket != part.npos) {
      if (!part.ends_with(')')) return std::nullopt;
      part.remove_suffix(1);
      times = ParseNumber<size_t>(part.substr(bracket + 2));
    }
    if (!count || *count < 0 || !times || *times < 1 || *times > kMaxNodes) return std::nullopt;
    counts.insert(counts.end(), *times, *count);
    if (counts.size() > kMaxNodes) return std::nullopt;
  }
  return counts;
}

std::optional<int> ParseGpuCount(std::string_view text) {
  std::optional<int> sum;
  while (!text.empty()) {
    size_t bracket = text.find('(');  // a list of sockets may hold commas
    size_t comma = text.find(',');
    if (bracket < comma) comma = text.find(',', std::min(text.find(')'), text.size()));
    comma = std::min(comma, text.size());
    auto count = GpusOf(text.substr(0, comma));
    if (!count) return std::nullopt;
    sum = std::min(sum.value_or(0) + *count, 10'000);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return sum;
}

}  // namespace rankrun::launcher

#include "launcher/settings/rdzv_conf.h"

#include <algorithm>
#include <array>

#include "base/lowercase.h"
#include "base/parse_number.h"
#include "launcher/flags/text.h"

namespace rankrun::launcher {
namespace {

constexpr int kYear = 365 * 24 * 3600;  // seconds
constexpr std::array<std::string_view, 5> kOn = {"1", "true", "t", "yes", "y"};
constexpr std::array<std::string_view, 5> kOff = {"0", "false", "f", "no", "n"};

Error Invalid(const std::string& text) { return {ErrorCode::kInvalid, text}; }

}  // namespace

Result<RdzvConf> RdzvConf::Parse(std::string_view text) {
  RdzvConf conf;
  text = Stripped(text);
  if (text.empty()) return conf;
  for (std::string_view part : SplitAtCommas(text)) {
    size_t equals = part.find('=');
    std::string key(Stripped(part.substr(0, equals)));
    if (key.empty()) return Invalid("want KEY=VALUE,KEY=VALUE" + Got(text));
    std::string_view value = equals == part.npos ? "" : Stripped(part.substr(equals + 1));
    if (value.empty()) return Invalid("the key \"" + key + "\" has no value" + Got(text));
    conf.values_.insert_or_assign(std::move(key), std::string(value));
  }
  return conf;
}

Result<std::optional<int>> RdzvConf::Number(std::string_view key, int least) const {
  auto found = values_.find(key);
  if (found == values_.end()) return std::optional<int>();
  auto number = ParseNumber<int>(found->second);
  if (number && *number >= least && *number <= kYear) return number;
  return Invalid("want a whole number of at least " + std::to_string(least) + " for " +
                 std::string(key) + Got(found->second));
}

Result<std::optional<bool>> RdzvConf::Switch(std::string_view key) const {
  auto found = values_.find(key);
  if (found == values_.end()) return std::optional<bool>();
  std::string text = Lowercase(found->second);
  if (std::ranges::find(kOn, text) != kOn.end()) return std::optional(true);
  if (std::ranges::find(kOff, text) != kOff.end()) return std::optional(false);
  return Invalid("want true or false for " + std::string(key) + Got(found->second));
}

Result<bool> RdzvConf::HasFileStore() const {
  auto found = values_.find("store_type");
  if (found == values_.end()) return false;
  std::string type = Lowercase(found->second);
  if (type == "tcp" || type == "file") return type == "file";
  return Invalid("want tcp or file for store_type" + Got(found->second));
}

}  // namespace rankrun::launcher

#include "launcher/settings/config_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/printable.h"
#include "launcher/flags/nearest_name.h"

namespace rankrun::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kProgramKey = "program";

// Returns a number or a text. Variables and arguments cannot hold a NUL
// character, so a text with one is refused.
std::optional<std::string> TextOf(const Json& value) {
  if (value.is_number()) return value.dump();
  if (!value.is_string()) return std::nullopt;
  auto text = value.get<std::string>();
  return text.find('\0') == text.npos ? std::optional(std::move(text)) : std::nullopt;
}

std::string TypeOf(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return TextOf(value) ? "a text" : "a text with a NUL character";
    case Json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    default:
      return "the number " + value.dump();
  }
}

class ConfigReader {
 public:
  ConfigReader(const FlagTable& table, const std::string& path) : table_(table), path_(path) {}

  Result<ConfigFile> Read(const Json& object) {
    if (!object.is_object()) return Wrong("want a JSON object, got " + TypeOf(object));
    for (const auto& [key, value] : object.items()) {
      if (auto read = ReadKey(key, value); !read) return std::move(read).error();
    }
    return std::move(result_);
  }

  // `what` may contain parts of the file, which may control a terminal.
  Error Wrong(const std::string& what) const {
    return {ErrorCode::kInvalid, path_ + ": " + OneLine(what)};
  }

  Error Wrong(const std::string& key, const std::string& what) const {
    return Wrong("\"" + key + "\": " + what);
  }

 private:
  Error UnknownKey(const std::string& key, const std::string& name) const {
    std::vector<std::string_view> names = {kProgramKey};
    for (const Flag& flag : table_.flags) {
      if (IsKey(flag)) names.push_back(flag.name);
    }
    auto nearest = NearestName(name, names);
    std::string hint = nearest ? "did you mean \"" + std::string(*nearest) + "\"?"
                               : std::string(table_.command) + " --help lists all";
    return Wrong("unknown key \"" + key + "\"; " + hint);
  }

  // --config cannot be in the file that it names.
  static bool IsKey(const Flag& flag) {
    return flag.sources != FlagSources::kNowhere && flag.name != "config";
  }

  Result<void> ReadKey(const std::string& key, const Json& value) {
    std::string name = key;
    std::ranges::replace(name, '_', '-');
    if (name == kProgramKey) return ReadProgram(key, value);
    auto flag = std::ranges::find(table_.flags, name, &Flag::name);
    if (flag == table_.flags.end()) return UnknownKey(key, name);
    if (!IsKey(*flag)) return Wrong(key, "cannot be set in a file");
    auto values = flag->repeats ? ReadVariables(key, value) : ReadValue(*flag, key, value);
    if (!values) return std::move(values).error();
    Setting setting{std::move(*values), "\"" + key + "\" in " + path_};
    if (!result_.settings.emplace(name, std::move(setting)).second) {
      return Wrong(key, "is given in both spellings");
    }
    return {};
  }

  Result<std::vector<std::string>> ReadValue(const Flag& flag, const std::string& key,
                                             const Json& value) const {
    using Values = std::vector<std::string>;
    if (flag.value == FlagValue::kNone) {
      if (value.is_boolean()) return Values{value.get<bool>() ? "true" : "false"};
      return Wrong(key, "want true or false, got " + TypeOf(value));
    }
    auto text = TextOf(value);
    if (!text) return Wrong(key, "want a text or a number, got " + TypeOf(value));
    std::string wrong = WrongValue(flag, *text);
    if (!wrong.empty()) return Wrong(key, wrong);
    return Values{*text};
  }

  Result<std::vector<std::string>> ReadVariables(const std::string& key, const Json& value) const {
    if (value.is_array()) return ReadTexts(key, value);
    if (!value.is_object()) {
      return Wrong(key, "want an object of names and values, got " + TypeOf(value));
    }
    std::vector<std::string> values;
    for (const auto& [name, entry] : value.items()) {
      auto text = TextOf(entry);
      if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != name.npos) {
        return Wrong(key, "\"" + name + "\" cannot be the name of a variable");
      }
      if (!text) {
        return Wrong(key, "want a text or a number for \"" + name + "\", got " + TypeOf(entry));
      }
      values.push_back(name + "=" + *text);
    }
    return values;
  }

  Result<std::vector<std::string>> ReadTexts(const std::string& key, const Json& array) const {
    std::vector<std::string> texts;
    for (const Json& entry : array) {
      auto text = TextOf(entry);
      if (!text) return Wrong(key, "want texts or numbers, got " + TypeOf(entry));
      texts.push_back(*text);
    }
    return texts;
  }

  Result<void> ReadProgram(const std::string& key, const Json& value) {
    if (!value.is_array() && !value.is_string()) {
      return Wrong(key, "want an array of texts, got " + TypeOf(value));
    }
    auto words = ReadTexts(key, value.is_array() ? value : Json::array({value}));
    if (!words) return std::move(words).error();
    result_.program = std::move(*words);
    return {};
  }

  const FlagTable& table_;
  const std::string& path_;
  ConfigFile result_;
};

// Returns "line 3, column 5" for the byte at which the parser failed, counted
// from 1.
std::string PlaceOf(const std::string& text, size_t byte) {
  std::string_view before = std::string_view(text).substr(0, byte == 0 ? 0 : byte - 1);
  size_t line = 1 + static_cast<size_t>(std::ranges::count(before, '\n'));
  size_t line_begin = before.rfind('\n');
  size_t column = line_begin == before.npos ? before.size() + 1 : before.size() - line_begin;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// Finds a key that occurs twice in an object; the parser keeps only its last
// value.
class KeyTracker {
 public:
  void OnEvent(Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::object_start) objects_.emplace_back();
    if (event == Json::parse_event_t::object_end) objects_.pop_back();
    if (event != Json::parse_event_t::key) return;
    last_ = parsed.get<std::string>();
    bool is_new = objects_.back().insert(last_).second;
    if (!is_new && !twice_) twice_ = last_;
  }

  const std::string& last() const { return last_; }
  const std::optional<std::string>& twice() const { return twice_; }

 private:
  std::vector<std::set<std::string>> objects_;  // keys of open objects, the innermost last
  std::string last_;
  std::optional<std::string> twice_;
};

}  // namespace

Result<ConfigFile> ReadConfig(const FlagTable& table, const std::string& text,
                              const std::string& path) {
  ConfigReader reader(table, path);
  KeyTracker keys;
  auto watch = [&keys](int, Json::parse_event_t event, Json& parsed) {
    keys.OnEvent(event, parsed);
    return true;
  };
  try {
    Json object = Json::parse(text, watch);
    if (keys.twice()) return reader.Wrong(*keys.twice(), "is given twice");
    return reader.Read(object);
  } catch (const Json::parse_error& error) {
    return reader.Wrong("invalid JSON at " + PlaceOf(text, error.byte));
  } catch (const Json::out_of_range&) {  // the only one that a parser throws
    return reader.Wrong(keys.last(), "the number is too large");
  } catch (const Json::exception& error) {  // dump() throws for a text that is no UTF-8
    return reader.Wrong(error.what());
  }
}

}  // namespace rankrun::launcher

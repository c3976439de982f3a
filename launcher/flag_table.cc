#include "launcher/flag_table.h"

#include <algorithm>
#include <optional>

#include "launcher/nearest_name.h"
#include "launcher/text.h"

namespace rankrun::launcher {
namespace {

std::string Canonical(const Flag& flag) { return "--" + std::string(flag.name); }

bool IsNumber(std::string_view argument) {
  return argument.size() > 1 && argument[1] >= '0' && argument[1] <= '9';
}

// Walks over the arguments.
class Splitter {
 public:
  Splitter(const FlagTable& table, FlagsEnd end, std::span<const std::string> arguments)
      : table_(table), end_(end), left_(arguments) {}

  Result<SplitArguments> Split() {
    bool swallowed = false;
    while (!left_.empty() && !swallowed) {
      if (!IsFlag(left_[0])) {
        if (end_ != FlagsEnd::kNowhere) break;
        result_.words.push_back(Take());
        continue;
      }
      std::string argument = Take();
      swallowed = argument == "--";
      if (swallowed) continue;
      auto taken = argument[1] == '-' ? TakeLong(argument.substr(2)) : TakeLetters(argument);
      if (!taken) return std::move(taken).error();
    }
    result_.words.insert(result_.words.end(), left_.begin(), left_.end());
    bool may_follow = end_ == FlagsEnd::kAtProgram && !swallowed;
    if (may_follow && result_.words.size() > 1 && result_.words[1] == "--") {
      result_.words.erase(result_.words.begin() + 1);
    }
    return std::move(result_);
  }

 private:
  bool IsFlag(std::string_view argument) const {
    if (argument.size() < 2 || argument[0] != '-') return false;
    return end_ != FlagsEnd::kNowhere || !IsNumber(argument);
  }

  std::string Take() {
    std::string first = left_[0];
    left_ = left_.subspan(1);
    return first;
  }

  const Flag* ByName(std::string_view name) const {
    auto found = std::ranges::find(table_.flags, name, &Flag::name);
    return found == table_.flags.end() ? nullptr : &*found;
  }

  const Flag* ByLetter(char letter) const {
    auto found = std::ranges::find(table_.flags, letter, &Flag::letter);
    return found == table_.flags.end() || letter == 0 ? nullptr : &*found;
  }

  std::string WhereAllAre() const { return std::string(table_.command) + " --help lists all"; }

  Error UnknownFlag(std::string_view name) const {
    std::string text = "unknown flag --" + std::string(name);
    std::vector<std::string_view> names;
    for (const Flag& flag : table_.flags) names.push_back(flag.name);
    if (auto nearest = NearestName(name, names)) {
      return {ErrorCode::kInvalid, text + "; did you mean --" + std::string(*nearest) + "?"};
    }
    return {ErrorCode::kInvalid, text + "; " + WhereAllAre()};
  }

  // The flag of that name, else the only one of torchrun's that begins so.
  Result<const Flag*> Find(std::string_view name) const {
    if (const Flag* flag = ByName(name)) return flag;
    std::vector<const Flag*> candidates;
    for (const Flag& flag : table_.flags) {
      bool begins = !name.empty() && flag.from_torchrun && flag.name.starts_with(name);
      if (begins) candidates.push_back(&flag);
    }
    if (candidates.size() == 1) return candidates[0];
    if (candidates.empty()) return UnknownFlag(name);
    std::string text = "--" + std::string(name) + " may be ";
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (i > 0) text += i + 1 == candidates.size() ? " or " : ", ";
      text += Canonical(*candidates[i]);
    }
    return Error{ErrorCode::kInvalid, std::move(text)};
  }

  // What a variable or the file has switched on must be possible to switch off.
  Result<void> AddSwitch(const Flag& flag, const std::optional<std::string>& attached) {
    if (!attached) {
      result_.flags.push_back(Canonical(flag));
      return {};
    }
    if (flag.elsewhere == Elsewhere::kNowhere) {
      return Error{ErrorCode::kInvalid, Canonical(flag) + " takes no value" + Got(*attached)};
    }
    auto value = SwitchText(*attached);
    if (!value) {
      return Error{ErrorCode::kInvalid, Canonical(flag) + ": " + WrongSwitch(*attached)};
    }
    result_.flags.push_back(Canonical(flag) + "=" + *value);
    return {};
  }

  // `attached` is what stood after "=" or after the letter.
  Result<void> Add(const Flag& flag, std::optional<std::string> attached) {
    if (flag.value == FlagValue::kNone) return AddSwitch(flag, attached);
    if (!attached && !left_.empty() && !left_[0].starts_with("--")) attached = Take();
    if (!attached || (attached->empty() && flag.value != FlagValue::kAnyText)) {
      return Error{ErrorCode::kInvalid,
                   Canonical(flag) + " needs a value (" + std::string(flag.value_name) + ")"};
    }
    result_.flags.push_back(Canonical(flag) + "=" + *attached);
    return {};
  }

  Result<void> TakeLong(const std::string& text) {
    size_t equals = text.find('=');
    std::string name = text.substr(0, equals);
    std::ranges::replace(name, '_', '-');
    auto flag = Find(name);
    if (!flag) return std::move(flag).error();
    if (equals == std::string::npos) return Add(**flag, std::nullopt);
    return Add(**flag, text.substr(equals + 1));
  }

  // "-n4", "-n=4", "-m", "-mn4".
  Result<void> TakeLetters(const std::string& cluster) {
    for (size_t i = 1; i < cluster.size(); ++i) {
      const Flag* flag = ByLetter(cluster[i]);
      if (flag == nullptr) {
        return Error{ErrorCode::kInvalid, std::string("unknown flag -") + cluster[i] + " in \"" +
                                              cluster + "\"; " + WhereAllAre()};
      }
      if (flag->value == FlagValue::kNone) {
        if (auto added = Add(*flag, std::nullopt); !added) return added;
        continue;
      }
      if (i + 1 == cluster.size()) return Add(*flag, std::nullopt);
      std::string rest = cluster.substr(i + 1);
      if (rest.starts_with('=')) rest.erase(0, 1);
      return Add(*flag, rest);
    }
    return {};
  }

  const FlagTable& table_;
  const FlagsEnd end_;
  std::span<const std::string> left_;
  SplitArguments result_;
};

}  // namespace

Result<SplitArguments> SplitFlags(const FlagTable& table, FlagsEnd end,
                                  std::span<const std::string> arguments) {
  return Splitter(table, end, arguments).Split();
}

}  // namespace rankrun::launcher

#include "agent/preload/python_command.h"

#include <string_view>

namespace rankrun::agent {
namespace {

// Options that a preloader is started with.
constexpr std::string_view kSwitches = "bBdEIOPqRsSuv";
constexpr std::string_view kWithValue = "WX";
constexpr std::string_view kLongWithValue = "--check-hash-based-pycs";

Error NoProgram(const std::string& why) { return {ErrorCode::kInvalid, why}; }

// Meaning of the word after one with options.
enum class Next { kOption, kValue, kProgram, kRefused };

Next AfterOption(std::string_view word) {
  if (word == kLongWithValue) return Next::kValue;
  for (size_t i = 1; i < word.size(); ++i) {
    const bool is_last = i + 1 == word.size();
    if (word[i] == 'm' || word[i] == 'c')
      return i == 1 && is_last ? Next::kProgram : Next::kRefused;
    if (kWithValue.find(word[i]) != kWithValue.npos) return is_last ? Next::kValue : Next::kOption;
    if (kSwitches.find(word[i]) == kSwitches.npos) return Next::kRefused;
  }
  return Next::kOption;
}

}  // namespace

Result<size_t> CountPythonOptions(const std::vector<std::string>& arguments) {
  size_t at = 1;
  for (; at < arguments.size(); ++at) {
    const std::string& word = arguments[at];
    if (word == "-") return NoProgram("the program is on standard input");
    if (word.empty() || word[0] != '-') return at - 1;
    switch (AfterOption(word)) {
      case Next::kOption:
        break;
      case Next::kValue:
        at += 1;
        break;
      case Next::kProgram:
        if (at + 1 < arguments.size()) return at - 1;
        return NoProgram(word + " has no value");
      case Next::kRefused:
        return NoProgram("it cannot be used with " + word);
    }
  }
  return NoProgram("no program is given to Python");
}

}  // namespace rankrun::agent

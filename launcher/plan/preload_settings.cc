#include "launcher/plan/preload_settings.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "agent/preload/python_command.h"
#include "launcher/flags/text.h"

namespace rankrun::launcher {
namespace {

constexpr std::string_view kName = "preload";
constexpr std::string_view kAuto = "auto";
constexpr const char* kModulesOfTorch = "torch,torch._dynamo";
constexpr std::string_view kBlanks = " \t";

// Bytes of other alphabets are part of identifiers, too.
bool IsIdentifier(std::string_view text) {
  auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c >= 0x80; };
  return !text.empty() && std::ranges::all_of(text, is_part) && std::isdigit(text[0]) == 0;
}

bool IsModule(std::string_view name) { return std::ranges::all_of(Split(name, '.'), IsIdentifier); }

// Removes a word, and the blanks behind it, from the beginning of `text`.
bool TakeWord(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  const std::string_view rest = text.substr(word.size());
  if (rest.empty() || kBlanks.find(rest[0]) == kBlanks.npos) return false;
  text = Stripped(rest);
  return true;
}

bool IsTorch(std::string_view name) {
  constexpr std::string_view kTorch = "torch";
  if (!name.starts_with(kTorch)) return false;
  name.remove_prefix(kTorch.size());
  return name.empty() || name.find_first_of(" \t.,;\r#") == 0;
}

bool LineImportsTorch(std::string_view line) {
  line = Stripped(line);
  if (TakeWord(line, "from")) return IsTorch(line);
  if (!TakeWord(line, "import")) return false;
  return std::ranges::any_of(SplitAtCommas(line),
                             [](std::string_view name) { return IsTorch(Stripped(name)); });
}

// Returns the files in which the code of a program may be: a script, or a module in the current
// folder. `words` follow the options of Python.
std::vector<std::string> FilesOf(const std::vector<std::string>& words) {
  if (words[0] == "-c") return {};
  if (words[0] != "-m") return {words[0], words[0] + "/__main__.py"};
  std::string path = words[1];
  std::ranges::replace(path, '.', '/');
  return {path + ".py", path + "/__main__.py"};
}

// Errors: kInvalid with the reason why a preloader cannot fork the program.
Result<agent::Preload> PreloadOf(const std::string& text, const ResolvedProgram& program,
                                 const ScriptReader& read_file) {
  const std::vector<std::string>& arguments = program.program.arguments;
  if (!program.is_python) {
    return Error{ErrorCode::kInvalid, arguments[0] + " is not run by Python"};
  }
  auto options = agent::CountPythonOptions(arguments);
  if (!options) return std::move(options).error();
  if (text != kAuto) return agent::Preload{.modules = text, .python_options = *options};
  const auto words = arguments.begin() + 1 + static_cast<ptrdiff_t>(*options);
  for (const std::string& path : FilesOf({words, arguments.end()})) {
    auto code = read_file(path);
    if (!code || !ImportsTorch(*code)) continue;
    return agent::Preload{.modules = kModulesOfTorch, .python_options = *options};
  }
  return Error{ErrorCode::kInvalid, "no line of the program's file imports torch"};
}

}  // namespace

bool ImportsTorch(std::string_view text) {
  return std::ranges::any_of(Split(text, '\n'), LineImportsTorch);
}

Result<void> ReadPreload(const Settings& settings, const ResolvedProgram& program,
                         const ScriptReader& read_file, JobPlan& plan) {
  auto text = settings.Text(kName);
  if (!text) return {};
  if (*text != kAuto && !std::ranges::all_of(SplitAtCommas(*text), IsModule)) {
    return settings.Wrong(kName,
                          "want names of Python's modules, MODULE,..., or auto" + Got(*text));
  }
  auto preload = PreloadOf(*text, program, read_file);
  if (preload) {
    plan.spec.preload = std::move(*preload);
    return {};
  }
  const std::string& why = preload.error().message;
  NoteIgnored(settings, kName, why, plan.ignored);
  const std::string origin = settings.OriginOf(kName);
  if (origin.starts_with("--")) plan.warnings.push_back(origin + " has no effect: " + why);
  return {};
}

}  // namespace rankrun::launcher

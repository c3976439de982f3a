#include "launcher/completion.h"

#include "base/check.h"
#include "launcher/flag_parser.h"

namespace rankrun::launcher {
namespace {

bool TakesValue(const Flag& flag) { return flag.value != FlagValue::kNone; }

// "--tee|-t"
std::string Pattern(const Flag& flag) {
  std::string pattern = "--" + std::string(flag.name);
  if (flag.letter != 0) pattern += std::string("|-") + flag.letter;
  return pattern;
}

std::string Words(const Flag& flag) {
  std::string words;
  for (std::string_view choice : ChoicesOf(flag)) {
    words += (words.empty() ? "" : " ") + std::string(choice);
  }
  return words;
}

// Text between single quotes of a shell.
std::string InQuotes(std::string_view text) {
  std::string quoted;
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted;
}

// The case lines of bash that complete the value of a flag.
std::string BashValues(const FlagTable& table) {
  std::string cases;
  for (const Flag& flag : table.flags) {
    if (!TakesValue(flag)) continue;
    std::string words = "COMPREPLY=()";
    if (!flag.choices.empty())
      words = "COMPREPLY=($(compgen -W '" + Words(flag) + "' -- \"$current\"))";
    if (flag.value == FlagValue::kFile) words = "COMPREPLY=($(compgen -f -- \"$current\"))";
    if (flag.value == FlagValue::kFolder) words = "COMPREPLY=($(compgen -d -- \"$current\"))";
    cases += "    " + Pattern(flag) + ") " + words + "; return ;;\n";
  }
  return cases;
}

std::string BashScript(const FlagTable& table) {
  std::string name(table.command);
  std::string takes_value;
  std::string flags;
  for (const Flag& flag : table.flags) {
    if (TakesValue(flag)) takes_value += (takes_value.empty() ? "" : "|") + Pattern(flag);
    flags += (flags.empty() ? "" : " ") + std::string("--") + std::string(flag.name);
  }
  return "# Completion of " + name + " for bash.\n_" + name + R"(() {
  local current=${COMP_WORDS[COMP_CWORD]} flag= i
  COMPREPLY=()
  # bash cuts "--tee=3" into three words; _words has it whole.
  local -a _words=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      =) flag==; _words+=("$flag") ;;
      *) _words+=("${COMP_WORDS[i]}") ;;
    esac
  done
  [ "$current" = = ] && { _words+=(=); current=; }
  flag=
  for ((i = 0; i < ${#_words[@]}; i++)); do
    case ${_words[i]} in
      )" +
         takes_value + R"()
        flag=${_words[i]}
        [ "${_words[i+1]-}" = = ] && i=$((i + 1))
        [ $((i + 1)) -lt ${#_words[@]} ] && flag=
        i=$((i + 1)) ;;
      --|[!-]*) _)" +
         name + R"(_program; return ;;
    esac
  done
  case $flag in
)" + BashValues(table) +
         R"(  esac
  case $current in
    -*) COMPREPLY=($(compgen -W ')" +
         flags + R"(' -- "$current")) ;;
    *) _)" +
         name + R"(_program ;;
  esac
}
_)" + name +
         R"(_program() {
  COMPREPLY=($(compgen -f -- "$current"))
  [ "$COMP_CWORD" -gt "${#_words[@]}" ] && return
  COMPREPLY+=($(compgen -c -- "$current"))
}
complete -o filenames -o bashdefault -F _)" +
         name + " " + name + "\n";
}

// What zsh's _arguments is told of a flag's value.
std::string ZshAction(const Flag& flag) {
  if (flag.value == FlagValue::kFile) return "_files";
  if (flag.value == FlagValue::kFolder) return "_files -/";
  return flag.choices.empty() ? " " : "(" + Words(flag) + ")";
}

// "[" and "]" end the description, ":" ends the part.
std::string ZshText(std::string_view text) {
  std::string escaped;
  for (char c : InQuotes(text)) {
    if (c == '[' || c == ']' || c == ':') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string ZshScript(const FlagTable& table) {
  std::string text = "#compdef " + std::string(table.command) + "\n_arguments -s -S \\\n";
  for (const Flag& flag : table.flags) {
    std::string tail = "[" + ZshText(flag.help) + "]";
    if (TakesValue(flag)) tail += ":" + ZshText(flag.value_name) + ":" + ZshAction(flag);
    std::string repeats = flag.repeats ? "*" : "";
    std::string equals = TakesValue(flag) ? "=" : "";
    text += "  '" + repeats + "--" + std::string(flag.name) + equals + tail + "' \\\n";
    std::string plus = TakesValue(flag) ? "+" : "";
    if (flag.letter != 0) text += "  '" + repeats + "-" + flag.letter + plus + tail + "' \\\n";
  }
  return text + "  '(-)1:program:{ _files; _command_names -e }' \\\n  '*::arguments:_normal'\n";
}

std::string FishScript(const FlagTable& table) {
  std::string name(table.command);
  std::string text = "# Completion of " + name + " for fish.\n";
  for (const Flag& flag : table.flags) {
    text += "complete -c " + name + " -l " + std::string(flag.name);
    if (flag.letter != 0) text += std::string(" -s ") + flag.letter;
    if (flag.value == FlagValue::kFile) text += " -r -F";
    if (flag.value == FlagValue::kFolder) text += " -x -a '(__fish_complete_directories)'";
    bool other =
        TakesValue(flag) && flag.value != FlagValue::kFile && flag.value != FlagValue::kFolder;
    if (other) text += " -x";
    if (other && !flag.choices.empty()) text += " -a '" + Words(flag) + "'";
    std::string help;
    for (char c : flag.help)
      help += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    text += " -d '" + help + "'\n";
  }
  return text;
}

}  // namespace

std::string CompletionScript(const FlagTable& table, std::string_view shell) {
  if (shell == "bash") return BashScript(table);
  if (shell == "zsh") return ZshScript(table);
  RANKRUN_CHECK(shell == "fish", "the table has another shell than this function");
  return FishScript(table);
}

}  // namespace rankrun::launcher

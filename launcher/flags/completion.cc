#include "launcher/flags/completion.h"

#include "base/check.h"
#include "launcher/flags/flag_parser.h"
#include "launcher/flags/marked_text.h"

namespace rankrun::launcher {
namespace {

bool TakesValue(const Flag& flag) { return flag.value != FlagValue::kNone; }

// Returns a pattern for the flag in a case of bash: "--tee|-t".
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

// Returns text for the inside of single quotes in a shell.
std::string InQuotes(std::string_view text) {
  std::string quoted;
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted;
}

// Returns the command that completes the value of a flag in bash; empty: none.
std::string BashAction(const Flag& flag) {
  if (flag.value == FlagValue::kFile) return "_rankrun_offer -f";
  if (flag.value == FlagValue::kFolder) return "_rankrun_offer -d";
  return flag.choices.empty() ? "" : "_rankrun_offer -W '" + Words(flag) + "'";
}

// Returns `skeleton` with `words` in the place of `place`, such as @FLAGS@.
std::string Filled(std::string skeleton, std::string_view place, const std::string& words) {
  for (size_t at = skeleton.find(place); at != skeleton.npos; at = skeleton.find(place)) {
    skeleton.replace(at, place.size(), words);
  }
  return skeleton;
}

// bash splits --tee=0:3 at "=" and at ":", and these characters are words, too.
constexpr const char* kBashSkeleton = R"(# Completion of @COMMAND@ for bash.
_rankrun_offer() {
  case $1 in -f | -d) compopt -o filenames 2>/dev/null ;; esac
  mapfile -t COMPREPLY < <(compgen "$@" -- "$current")
}

# Replaces an abbreviation in $word by the only flag of torchrun that it fits.
_rankrun_complete_word() {
  local name found=
  case " @FLAGS@ " in *" $word "*) return ;; esac
  for name in @TORCHRUN@; do
    case $name in "$word"*) [ -z "$found" ] || return; found=$name ;; esac
  done
  [ -n "$found" ] && word=$found
}

_rankrun() {
  local current=${COMP_WORDS[COMP_CWORD]} word flag= i=1
  COMPREPLY=()
  [ "$current" = = ] && current=
  while [ "$i" -lt "$COMP_CWORD" ]; do
    word=${COMP_WORDS[i]}
    i=$((i + 1))
    while [[ $word == -[@SWITCHES@]?* ]]; do word=-${word:2}; done
    case $word in --*) word=${word//_/-}; _rankrun_complete_word ;; esac
    case $word in
      @TAKES_VALUE@)
        [ "${COMP_WORDS[i]}" = = ] && i=$((i + 1))
        i=$((i + 1))
        while [[ ${COMP_WORDS[i]} == [=:]* ]]; do i=$((i + 2)); done
        [ "$i" -gt "$COMP_CWORD" ] && flag=$word ;;
      --) break ;;
      -*) ;;
      *) return ;;  # the program's own arguments
    esac
  done
  case $flag in
@VALUES@    ?*) return ;;
  esac
  case $current in
    -*) _rankrun_offer -W '@FLAGS@' ;;
    ?*) _rankrun_offer -f -A command ;;
  esac
}
complete -o bashdefault -o default -F _rankrun @COMMAND@
)";

std::string BashScript(const FlagTable& table) {
  std::string takes_value;
  std::string flags;
  std::string values;
  std::string torchruns;
  std::string switches;
  for (const Flag& flag : table.flags) {
    flags += (flags.empty() ? "--" : " --") + std::string(flag.name);
    if (flag.from_torchrun) torchruns += " --" + std::string(flag.name);
    if (!TakesValue(flag) && flag.letter != 0) switches += flag.letter;
    if (TakesValue(flag)) takes_value += (takes_value.empty() ? "" : "|") + Pattern(flag);
    std::string action = BashAction(flag);
    if (!action.empty()) values += "    " + Pattern(flag) + ") " + action + "; return ;;\n";
  }
  std::string script = Filled(kBashSkeleton, "@COMMAND@", std::string(table.command));
  script = Filled(std::move(script), "@TAKES_VALUE@", takes_value);
  script = Filled(std::move(script), "@VALUES@", values);
  script = Filled(std::move(script), "@TORCHRUN@", torchruns);
  script = Filled(std::move(script), "@SWITCHES@", switches);
  return Filled(std::move(script), "@FLAGS@", flags);
}

// Returns the action of zsh's _arguments for the value of a flag.
std::string ZshAction(const Flag& flag) {
  if (flag.value == FlagValue::kFile) return "_files";
  if (flag.value == FlagValue::kFolder) return "_files -/";
  return flag.choices.empty() ? " " : "(" + Words(flag) + ")";
}

// Returns text for a part of an argument of _arguments. Escapes the characters
// that end this part.
std::string ZshText(std::string_view text, std::string_view ends) {
  std::string escaped;
  for (char c : InQuotes(text)) {
    if (ends.find(c) != ends.npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string ZshScript(const FlagTable& table) {
  std::string text = "#compdef " + std::string(table.command) + "\n_arguments -s -S \\\n";
  for (const Flag& flag : table.flags) {
    std::string tail = "[" + ZshText(PlainText(flag.help), "[]:") + "]";
    if (TakesValue(flag)) tail += ":" + ZshText(flag.value_name, ":") + ":" + ZshAction(flag);
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
    for (char c : PlainText(flag.help))
      help += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    text += " -d '" + help + "'\n";
  }
  return text;
}

// Returns the rule of tcsh's `complete` for the word after a flag; "x" offers nothing.
std::string TcshRule(const Flag& flag, const std::string& name) {
  std::string action = flag.choices.empty() ? "x" : "(" + Words(flag) + ")";
  if (flag.value == FlagValue::kFile) action = "f";
  if (flag.value == FlagValue::kFolder) action = "d";
  return " \\\n  'n/" + name + "/" + action + "/'";
}

// tcsh has no function that could find the program, so a flag of the program is completed, too.
std::string TcshScript(const FlagTable& table) {
  std::string name(table.command);
  std::string text = "# Completion of " + name + " for tcsh.\ncomplete " + name;
  std::string flags;
  for (const Flag& flag : table.flags) {
    flags += (flags.empty() ? "" : " ") + std::string(flag.name);
    if (!TakesValue(flag)) continue;
    text += TcshRule(flag, "--" + std::string(flag.name));
    if (flag.letter != 0) text += TcshRule(flag, std::string("-") + flag.letter);
  }
  return text + " \\\n  'c/--/(" + flags + ")/' \\\n  'p/*/f/'\n";
}

}  // namespace

std::string CompletionScript(const FlagTable& table, std::string_view shell) {
  if (shell == "bash") return BashScript(table);
  if (shell == "zsh") return ZshScript(table);
  if (shell == "tcsh") return TcshScript(table);
  RANKRUN_CHECK(shell == "fish", "the table has another shell than this function");
  return FishScript(table);
}

}  // namespace rankrun::launcher

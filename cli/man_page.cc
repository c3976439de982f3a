#include "cli/man_page.h"

#include <vector>

#include "cli/command.h"
#include "cli/store_commands.h"
#include "launcher/flags/man_page.h"
#include "launcher/flags/marked_text.h"

namespace rankrun::cli {
namespace {

using launcher::Flag;
using Names = std::vector<std::string_view>;

std::vector<Command> AllCommands() {
  std::vector<Command> commands = TopCommands();
  commands.insert(commands.end(), StoreCommands().begin(), StoreCommands().end());
  return commands;
}

// Returns the names of the commands that have the same flag, with the same
// meaning.
Names CommandsWith(const Flag& wanted) {
  Names names;
  for (const Command& command : AllCommands()) {
    for (const Flag& flag : command.flags) {
      bool same = flag.name == wanted.name && flag.help == wanted.help;
      if (same) names.push_back(command.name);
    }
  }
  return names;
}

// A section with the flags that only this command has.
std::string SectionOf(const Command& command) {
  std::string text = std::string(command.help) + " " + std::string(command.details);
  std::string section = ".SS " + std::string(command.title) + " " + UsageOf(command) + "\n" +
                        launcher::ManParagraphs(text, ".PP");
  for (const Flag& flag : command.flags) {
    if (CommandsWith(flag).size() <= 1) section += launcher::ManEntry(flag);
  }
  return section;
}

// The flags that several commands have, each once.
std::string SharedFlags() {
  std::string entries;
  for (const Command& command : AllCommands()) {
    for (const Flag& flag : command.flags) {
      Names names = CommandsWith(flag);
      bool is_next = names.size() > 1 && names.front() == command.name;
      if (!is_next || flag.name == kHelpFlag.name) continue;
      std::string note;
      for (std::string_view name : names) note += (note.empty() ? "" : ", ") + std::string(name);
      entries += launcher::ManEntry(flag, "Commands: " + note + ".");
    }
  }
  return entries + launcher::ManEntry(kHelpFlag);
}

}  // namespace

std::string RankctlManPart() {
  std::string text = ".SH COMMANDS\n";
  for (const Command& command : AllCommands()) text += SectionOf(command);
  text += ".SH OPTIONS\nThese flags belong to more than one command.\n" + SharedFlags() +
          launcher::ManEntry(kVersionFlag, "Without a command only: `rankctl --version`.");
  return launcher::GeneratedPart("cli/store_commands.cc", text);
}

}  // namespace rankrun::cli

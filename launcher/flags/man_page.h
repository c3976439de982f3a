#pragma once

#include <string>
#include <string_view>

#include "launcher/flags/flag_table.h"

// Generates the parts of man pages that describe flags, in the mark-up of
// man(7). scripts/man.sh puts them into man/; a test compares them. Pure.
namespace rankrun::launcher {

// Returns the entry of one flag: its spellings, text, default and variables.
// `note`, if any, is a last sentence.
std::string ManEntry(const Flag& flag, std::string_view note = {});

// Returns the entries of all flags of a table, each group under its heading.
std::string ManEntries(const FlagTable& table);

// Returns `text` between the two comment lines that enclose the generated part
// of a page. `source` names the files that have the table.
std::string GeneratedPart(std::string_view source, std::string_view text);

// Returns the generated part of rankrun(1).
std::string RankrunManPart();

}  // namespace rankrun::launcher

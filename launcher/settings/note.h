#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// A setting that has no effect, for --explain.
struct Note {
  std::string what;  // "--monitor-interval 0.5"
  std::string why;

  bool operator==(const Note&) const = default;
};

// Adds a note that a setting has no effect, if the setting is given.
void NoteIgnored(const Settings& settings, std::string_view name, const std::string& why,
                 std::vector<Note>& notes);

}  // namespace rankrun::launcher

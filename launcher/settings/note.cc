#include "launcher/settings/note.h"

namespace rankrun::launcher {

void NoteIgnored(const Settings& settings, std::string_view name, const std::string& why,
                 std::vector<Note>& notes) {
  auto found = settings.all().find(name);
  if (found == settings.all().end()) return;
  notes.push_back({found->second.origin + " " + ShownValue(found->second), why});
}

}  // namespace rankrun::launcher

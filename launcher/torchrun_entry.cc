#include "launcher/torchrun_entry.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/own_file.h"

namespace rankrun::launcher {
namespace {

// Each of our entries has the first text, each of PyTorch's the second.
constexpr std::string_view kOurs = "# by rankrun --install-torchrun";
constexpr std::string_view kPytorchs = "torch.distributed.run";

enum class Entry { kAbsent, kOurs, kPytorchs, kOther };

Entry Look(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, error))) return Entry::kAbsent;
  constexpr size_t kBytes = 4096;
  std::string text(kBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), kBytes);
  if (text.find(kOurs) != std::string::npos) return Entry::kOurs;
  return text.find(kPytorchs) != std::string::npos ? Entry::kPytorchs : Entry::kOther;
}

// For a shell the docstring is a command between two that do nothing. Python makes itself
// the Python of the workers, and starts the shell.
std::string EntryText(const std::string& rankrun) {
  return "#!/bin/sh\n"
         "\"\"\":\"  " +
         std::string(kOurs) + "\ntest -x '" + rankrun + "' && exec '" + rankrun +
         "' --as-torchrun \"$@\"\n"
         "exec \"$0-pytorch\" \"$@\"\n"
         "\":\"\"\"\n"
         "import os, sys\n"
         "os.environ.setdefault(\"PYTHON_EXEC\", sys.executable)\n"
         "os.execv(\"/bin/sh\", [\"sh\", __file__, *sys.argv[1:]])\n";
}

// Puts PyTorch's entry aside, where it stays beside its old place until that is replaced.
Result<void> KeepPytorchs(const std::string& path, const std::string& aside) {
  if (unlink(aside.c_str()) != 0 && errno != ENOENT) return SystemError(aside, errno);
  if (link(path.c_str(), aside.c_str()) != 0) return SystemError(aside, errno);
  return {};
}

std::string Aside(const std::string& path) { return path + "-pytorch"; }

}  // namespace

Result<std::string> InstallTorchrun(const std::string& folder, const std::string& rankrun) {
  if (rankrun.find_first_of("'\"\\\n") != std::string::npos) {
    return Error{ErrorCode::kInvalid, rankrun + ": want a path without quotes and backslashes"};
  }
  const std::string path = folder + "/torchrun";
  const Entry before = Look(path);
  if (before == Entry::kOther) {
    return Error{ErrorCode::kInvalid, path + " is not PyTorch's torchrun: left as it is"};
  }
  if (before == Entry::kPytorchs) {
    if (auto kept = KeepPytorchs(path, Aside(path)); !kept) return std::move(kept).error();
  }
  constexpr mode_t kProgram = 0755;
  auto written = ReplaceFile(path, EntryText(rankrun), kProgram);
  if (!written) return std::move(written).error();
  const bool has_pytorchs = access(Aside(path).c_str(), F_OK) == 0;
  return path + " starts " + rankrun +
         (has_pytorchs ? "; PyTorch's is " + Aside(path) : std::string());
}

Result<std::string> UninstallTorchrun(const std::string& folder) {
  const std::string path = folder + "/torchrun";
  if (Look(path) != Entry::kOurs) return path + " does not start rankrun: left as it is";
  if (rename(Aside(path).c_str(), path.c_str()) == 0) return path + " is PyTorch's again";
  if (errno != ENOENT) return SystemError(path, errno);
  if (unlink(path.c_str()) != 0) return SystemError(path, errno);
  return path + " is removed; PyTorch had none here";
}

}  // namespace rankrun::launcher

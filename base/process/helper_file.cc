#include "base/process/helper_file.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace rankrun {

Result<std::string> FindHelperFile(const std::string& name, int mode) {
  std::vector<std::filesystem::path> folders;
  if (const char* chosen = secure_getenv("RANKRUN_PLUGIN_DIR"); chosen != nullptr && *chosen) {
    folders.emplace_back(chosen);
  }
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (!failure) {
    folders.push_back(program.parent_path());
    folders.push_back(program.parent_path().parent_path() / "libexec" / "rankrun");
  }
  std::string tried;
  for (const auto& folder : folders) {
    std::string path = folder / name;
    if (access(path.c_str(), mode) == 0) return path;
    tried += (tried.empty() ? "" : ", ") + path;
  }
  return Error{ErrorCode::kNotFound, "there is no " + name + "; tried " + tried};
}

}  // namespace rankrun

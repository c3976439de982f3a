#include "tests/paths.h"

namespace rankrun::test {
namespace {

std::string In(const std::string& folder, const std::string& path) {
  return path.empty() ? folder : folder + "/" + path;
}

}  // namespace

std::string InSource(const std::string& path) { return In(RANKRUN_SOURCE_DIR, path); }

std::string InBuild(const std::string& path) { return In(RANKRUN_BINARY_DIR, path); }

std::string Program(const std::string& name) { return InBuild("bin/" + name); }

std::string Library(const std::string& file) { return In(RANKRUN_LIB_DIR, file); }

}  // namespace rankrun::test

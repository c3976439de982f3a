#pragma once

#include <string>

// Places of files that tests read or run. Only paths.cc is compiled with the folders
// of this clone, so that clones share the other tests in the compiler cache.
namespace rankrun::test {

std::string InSource(const std::string& path = "");  // of the repository
std::string InBuild(const std::string& path = "");   // of this build
std::string Program(const std::string& name);        // that this build has made
std::string Library(const std::string& file = "");   // that this build has made

}  // namespace rankrun::test

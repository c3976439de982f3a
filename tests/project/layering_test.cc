#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "tests/paths.h"
#include "tests/project/source_files.h"

namespace rankrun {
namespace {

using Rooms = std::map<std::string, std::set<std::string>>;

// The layers, and the other layers that each may include. "rankrun" stands for <rankrun/...>, the
// public headers.
const Rooms kLayers = {
    {"base", {}},
    {"store", {"base"}},
    {"agent", {"store", "base"}},
    {"launcher", {"agent", "store", "base"}},
    {"cli", {"launcher", "agent", "store", "base"}},
    {"comm", {"rankrun", "store", "base"}},
    {"bench", {"rankrun", "launcher", "agent", "comm", "store", "base"}},
    {"examples", {"rankrun"}},
    {"python", {"rankrun"}},
};

// The rooms of a layer, and the other rooms of that layer that each may include.
// "" is the top folder of the layer.
const std::map<std::string, Rooms> kRooms = {
    {"base",
     {
         {"", {}},
         {"net", {""}},
         {"uv", {"", "net"}},
         {"process", {"", "uv"}},
         {"status", {""}},
         {"trace", {"", "status"}},
     }},
    {"store",
     {
         {"", {}},
         {"engine", {}},
         {"wire", {"engine"}},
         {"server", {"engine", "wire"}},
         {"clients", {"", "engine", "wire"}},
     }},
    {"agent",
     {
         {"job", {}},
         {"lifecycle", {"job"}},
         {"process", {"job"}},
         {"preload", {"job"}},
         {"health", {"job", "process", "stacks"}},
         {"inspect", {"health", "stacks"}},
         {"machine", {"job"}},
         {"machine/topology", {"machine"}},
         {"output", {"job"}},
         {"guardian", {"job", "lifecycle", "process", "output"}},
         {"metrics", {"job", "report"}},
         {"stacks", {}},
         {"stacks/helper", {"stacks"}},
         {"report", {"job", "lifecycle", "process", "output", "guardian", "stacks"}},
         {"worker", {"job", "lifecycle", "process", "health", "machine", "output", "report"}},
         {"coordination", {"job", "lifecycle"}},
         {"control", {"job"}},
         {"nodes", {"control", "coordination", "report", "guardian", "health", "job", "lifecycle"}},
         {"supervisor",
          {"job", "lifecycle", "process", "preload", "health", "inspect", "machine", "output",
           "guardian", "stacks", "report", "metrics", "worker", "coordination", "nodes"}},
     }},
    {"launcher",
     {
         {"flags", {}},
         {"settings", {"flags"}},
         {"scheduler", {"flags", "settings"}},
         {"plan", {"flags", "settings", "scheduler"}},
         {"show", {"flags", "settings", "scheduler", "plan"}},
         {"", {"flags", "settings", "scheduler", "plan", "show"}},
     }},
    {"comm",
     {
         {"include/rankrun", {}},
         {"include/rankrun/c", {}},
         {"include/rankrun/diagnosis", {}},
         {"include/rankrun/internal", {}},
         {"include/rankrun/rpc", {}},
         {"include/rankrun/training", {}},
         {"reduce", {}},
         {"mesh", {}},
         {"core", {"reduce"}},
         {"async", {"core"}},
         {"group", {"async", "core"}},
         {"stores", {"core"}},
         {"shm", {"core", "reduce"}},
         {"gloo", {"core", "reduce"}},
         {"mpi", {"core", "stream"}},
         {"nccl", {"core", "reduce"}},
         {"stream", {"core"}},
         {"tcp", {"core", "stream"}},
         {"hierarchy", {"core", "shm", "stream", "tcp"}},
         {"rpc", {"core", "stream"}},
         {"training", {"reduce"}},
         {"world", {"group", "stores", "shm", "stream", "tcp", "hierarchy", "core", "mesh"}},
         {"cpp", {"world", "async", "group", "core", "mesh", "training"}},
         {"cpp/rpc", {"world", "group", "core", "rpc", "c"}},
         {"c", {"group", "stores"}},
         {"launch", {"core", "world"}},
     }},
};

// Libraries that only .cc files may include.
constexpr const char* kHidden[] = {"<uv.h", "<uv/",   "<spdlog/", "<CLI/",    "<nlohmann/",
                                   "<fmt/", "<gloo/", "<hwloc",   "<sodium",  "<dlpack/",
                                   "<nccl", "<cuda",  "<mpi",     "<elfutils"};

struct Include {
  std::string file;    // "agent/worker/worker.cc"
  std::string target;  // "<vector>", "\"base/fd.h\""
};

std::vector<Include> IncludesOf(const std::string& folder) {
  std::vector<Include> includes;
  for (const std::string& file : test::SourceFiles(folder)) {
    std::istringstream text(test::ReadText(test::InSource(file)));
    for (std::string line; std::getline(text, line);) {
      std::erase(line, ' ');
      size_t begin = line.find_first_of("<\"");
      if (!line.starts_with("#include") || begin == std::string::npos) continue;
      size_t end = line.find_first_of(">\"", begin + 1);
      includes.push_back({file, line.substr(begin, end - begin + 1)});
    }
  }
  return includes;
}

// Returns the top folder of an include: "base" for "base/fd.h", "rankrun" for
// <rankrun/tensor.h>, "" for other libraries.
std::string FolderOf(const std::string& target) {
  std::string folder = target.substr(1, target.find('/') - 1);
  if (target.find('/') == std::string::npos) return "";
  bool ours = folder == "rankrun" || kLayers.contains(folder) || folder == "tests";
  return ours ? folder : "";
}

TEST(LayeringTest, ArrowsPointDown) {
  for (const auto& [folder, below] : kLayers) {
    std::vector<Include> includes = IncludesOf(folder);
    EXPECT_FALSE(includes.empty()) << folder << "/ was not found";
    for (const Include& include : includes) {
      std::string to = FolderOf(include.target);
      EXPECT_TRUE(to.empty() || to == folder || below.contains(to))
          << include.file << " includes " << include.target;
    }
  }
}

// Returns "worker" for "agent/worker/attempt.cc", "" for "base/fd.h".
std::string RoomOf(const std::string& file) {
  size_t begin = file.find('/') + 1;
  size_t end = file.rfind('/');
  return end < begin ? "" : file.substr(begin, end - begin);
}

TEST(LayeringTest, RoomsIncludeOnlyWhatTheyMay) {
  for (const auto& [layer, rooms] : kRooms) {
    for (const Include& include : IncludesOf(layer)) {
      auto room = rooms.find(RoomOf(include.file));
      ASSERT_NE(room, rooms.end()) << include.file << " is in no room of " << layer;
      if (!include.target.starts_with("\"" + layer + "/")) continue;
      std::string to = RoomOf(include.target.substr(1));
      EXPECT_TRUE(to == room->first || room->second.contains(to))
          << include.file << " includes " << include.target;
    }
  }
}

// Rows of the table of rooms in docs/architecture.md: "layer/room" to the cells
// behind the name: owns, never, may include.
std::map<std::string, std::vector<std::string>> DocumentedRooms() {
  std::istringstream lines(test::ReadText(test::InSource("docs/architecture.md")));
  std::map<std::string, std::vector<std::string>> rooms;
  std::string layer;
  for (std::string line;
       std::getline(lines, line) && line != "## Decide in pure code, act at the edge";) {
    if (!line.starts_with("| `") && !line.starts_with("| **`")) continue;
    std::vector<std::string> cells;
    std::istringstream row(line.substr(2));
    for (std::string cell; std::getline(row, cell, '|');) cells.push_back(cell);
    std::istringstream names(cells[0]);
    for (std::string name; std::getline(names, name, ',');) {
      bool is_layer = name.starts_with("**") || name.starts_with("`cli/`");
      name = name.substr(name.find('`') + 1);
      name = name.substr(0, name.find("/`"));
      if (is_layer) layer = name;
      rooms[is_layer ? name : layer + "/" + name] = {cells.begin() + 1, cells.end()};
    }
  }
  return rooms;
}

TEST(LayeringTest, RoomsAreDocumented) {
  auto documented = DocumentedRooms();
  for (const auto& [layer, rooms] : kRooms) {
    EXPECT_TRUE(documented.contains(layer)) << layer;
    for (const auto& [room, below] : rooms) {
      if (room.empty() || room.find("topology") != std::string::npos) continue;
      auto row = documented.find(layer + "/" + room);
      ASSERT_NE(row, documented.end()) << layer << "/" << room << " is not in architecture.md";
      ASSERT_EQ(row->second.size(), 3U) << row->first;
      EXPECT_NE(row->second[0], " ") << row->first << " owns nothing";
      for (const std::string& other : below) {
        bool all = row->second[2].starts_with(" all of");
        EXPECT_TRUE(all || other.empty() || row->second[2].find(other) != std::string::npos)
            << row->first << " may include " << other;
      }
    }
  }
}

TEST(LayeringTest, RoomsHaveNoCycle) {
  for (const auto& [layer, rooms] : kRooms) {
    std::set<std::string> done;
    for (size_t round = 0; round < rooms.size(); ++round) {
      for (const auto& [room, below] : rooms) {
        if (std::includes(done.begin(), done.end(), below.begin(), below.end())) done.insert(room);
      }
    }
    EXPECT_EQ(done.size(), rooms.size())
        << "rooms of " << layer << " include each other in a circle";
  }
}

// They are librankrun_rpc.so, which librankrun.so does not need.
TEST(LayeringTest, NoOtherRoomKnowsRpc) {
  const std::set<std::string> of_rpc = {"rpc", "cpp/rpc", "include/rankrun/rpc"};
  for (const Include& include : IncludesOf("comm")) {
    if (of_rpc.contains(RoomOf(include.file)) || include.file.ends_with("rankrun/rpc.h")) continue;
    EXPECT_EQ(include.target.find("/rpc"), std::string::npos)
        << include.file << " includes " << include.target;
  }
}

TEST(LayeringTest, FoldersHaveAtMost30Units) {
  std::map<std::string, std::set<std::string>> units;
  for (const char* tree :
       {"base", "store", "agent", "launcher", "cli", "comm", "bench", "examples", "tests"}) {
    for (const std::string& file : test::SourceFiles(tree)) {
      std::filesystem::path path(file);
      units[path.parent_path()].insert(path.stem());
    }
  }
  for (const auto& [folder, names] : units) EXPECT_LE(names.size(), 30U) << folder;
}

TEST(LayeringTest, OurHeadersAreNamedFromTheRoot) {
  for (const char* folder : {"base", "store", "agent", "launcher", "cli", "comm"}) {
    for (const Include& include : IncludesOf(folder)) {
      if (include.target[0] != '"') continue;
      EXPECT_NE(FolderOf(include.target), "") << include.file << " includes " << include.target;
    }
  }
}

TEST(LayeringTest, LibuvIsVisibleInItsWrappersOnly) {
  int wrappers = 0;
  for (const auto& [folder, below] : kLayers) {
    for (const Include& include : IncludesOf(folder)) {
      if (!include.target.starts_with("<uv")) continue;
      if (include.file == "bench/store/store_echo.cc")
        continue;  // compares rankrun with plain libuv
      EXPECT_TRUE(include.file.starts_with("base/uv/uv_") && include.file.ends_with(".cc"))
          << include.file << " includes " << include.target;
      wrappers += 1;
    }
  }
  EXPECT_GT(wrappers, 5);
}

TEST(LayeringTest, NoHeaderShowsALibrary) {
  for (const auto& [folder, below] : kLayers) {
    for (const Include& include : IncludesOf(folder)) {
      if (!include.file.ends_with(".h")) continue;
      bool is_of_plugin = include.file.starts_with("comm/gloo/") ||
                          include.file.starts_with("comm/mpi/") ||
                          include.file.starts_with("comm/nccl/");
      if (is_of_plugin) continue;
      if (include.file.starts_with("agent/nodes/cbor_")) continue;  // templates
      // For programs with nlohmann::json.
      if (include.file == "comm/include/rankrun/rpc/codec.h") continue;
      EXPECT_FALSE(include.target.starts_with("\"agent/nodes/cbor_"))
          << include.file << ": for .cc files only";
      if (include.target == "<nlohmann/json_fwd.hpp>") continue;  // declarations only
      for (const char* hidden : kHidden) {
        EXPECT_FALSE(include.target.starts_with(hidden))
            << include.file << " includes " << include.target;
      }
    }
  }
}

// clang's thread safety analysis knows Mutex, but not the locks of libstdc++.
TEST(LayeringTest, LocksAreThoseOfBaseMutex) {
  for (const char* folder : {"base", "store", "agent", "launcher", "comm", "cli"}) {
    for (const std::string& file : test::SourceFiles(folder)) {
      if (file == "base/mutex.h") continue;
      std::string text = test::ReadText(test::InSource(file));
      for (const char* lock : {"std::mutex", "std::recursive_mutex", "std::shared_mutex",
                               "std::timed_mutex", "std::lock_guard", "std::unique_lock",
                               "std::scoped_lock", "std::shared_lock", "std::condition_variable"}) {
        EXPECT_EQ(text.find(lock), std::string::npos) << file << " uses " << lock;
      }
    }
  }
}

TEST(LayeringTest, EveryHeaderIsIncludedOnce) {
  for (const auto& [folder, below] : kLayers) {
    for (const std::string& file : test::SourceFiles(folder)) {
      if (!file.ends_with(".h")) continue;
      std::string text = test::ReadText(test::InSource(file));
      EXPECT_NE(text.find("#pragma once\n"), std::string::npos) << file;
    }
  }
}

TEST(LayeringTest, FilesHaveTheSizeOfOneIdea) {
  for (const auto& [folder, below] : kLayers) {
    for (const std::string& file : test::SourceFiles(folder)) {
      std::string text = test::ReadText(test::InSource(file));
      auto lines = std::count(text.begin(), text.end(), '\n');
      EXPECT_LE(lines, file.ends_with(".h") ? 150 : 400) << file;
    }
  }
}

}  // namespace
}  // namespace rankrun

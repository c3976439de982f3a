// Prints "GPUs", or why the NCCL plug-in has none.

#include <cstdio>

#include "comm/world/plugin.h"

int main() {
  auto memory = rankrun::comm::LoadDeviceMemory(rankrun::comm::PluginFolders());
  std::puts(memory ? "GPUs" : memory.error().message.c_str());
}

// man_parts: prints the part of a man page that scripts/man.sh generates.
// Usage: man_parts PROGRAM

#include <cstdio>
#include <string_view>

#include "bench/rankrun_bench/flags.h"
#include "cli/man_page.h"
#include "launcher/flags/man_page.h"

int main(int argc, char** argv) {
  std::string_view program = argc == 2 ? argv[1] : "";
  std::string part;
  if (program == "rankrun") part = rankrun::launcher::RankrunManPart();
  if (program == "rankctl") part = rankrun::cli::RankctlManPart();
  if (program == "rankrun-bench") part = rankrun::bench::BenchManPart();
  std::fputs(part.c_str(), stdout);
  return part.empty() ? 2 : 0;
}

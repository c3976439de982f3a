#include "launcher/show/hints.h"

#include "agent/report/last_error.h"
#include "agent/report/verdict.h"

namespace rankrun::launcher {
namespace {

bool Has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

// Python's input(), and pdb, which gives up.
bool ReadsEndOfInput(const std::string& error) {
  return Has(error, "EOFError: EOF when reading a line") || Has(error, "bdb.BdbQuit");
}

// Python's argparse, in a program for launchers that spell the flag with an underscore.
bool RefusesLocalRank(const std::string& error) {
  return Has(error, "unrecognized arguments: --local-rank=");
}

}  // namespace

std::string HintFor(const agent::WorkerRecord& cause) {
  const std::string error = agent::FindLastError(agent::OutputOfErrors(cause)).text;
  if (ReadsEndOfInput(error) && !cause.reads_terminal.value_or(false)) {
    return "it read the end of its standard input; --stdin " + std::to_string(cause.local_rank) +
           " gives it that of rankrun";
  }
  if (RefusesLocalRank(error)) {
    return "the program does not know --local-rank, which rankrun-launch adds; this works: "
           "rankrun FLAGS PROGRAM '--local_rank=${local_rank}'";
  }
  return "";
}

}  // namespace rankrun::launcher

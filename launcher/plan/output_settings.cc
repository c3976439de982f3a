#include "launcher/plan/output_settings.h"

#include <algorithm>
#include <set>

#include "base/parse_number.h"
#include "launcher/flags/text.h"

namespace rankrun::launcher {
namespace {

using Masks = std::vector<unsigned>;  // by local rank

constexpr unsigned kStdout = 1;
constexpr unsigned kStderr = 2;

constexpr std::string_view kTemplate = "log-line-prefix-template";
constexpr const char* kPrefixVariable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";
constexpr std::string_view kTorchrunPrefix = "[${role_name}${local_rank}]:";
constexpr std::string_view kRankPrefix = "[${rank}] ";
constexpr std::string_view kNowhere = "/dev/null";

std::optional<unsigned> ParseMask(std::string_view text) {
  auto mask = ParseNumber<unsigned>(text);
  return mask && *mask <= 3 && text.size() == 1 ? mask : std::nullopt;
}

// Returns a number without a sign.
std::optional<int> ParseLocalRank(std::string_view text) {
  auto number = ParseNumber<int>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

class OutputReader {
 public:
  OutputReader(const Settings& settings, const OutputContext& context)
      : settings_(settings), context_(context) {}

  Result<OutputPlan> Read() {
    plan_.spec.log_dir = settings_.NonEmptyText("log-dir");
    plan_.spec.no_files = plan_.spec.log_dir == kNowhere;
    plan_.spec.trace_dir = settings_.Text("trace").value_or("");
    plan_.spec.log_limit = settings_.values().Size("log-limit").value_or(0);
    plan_.spec.pty = settings_.IsOn("pty");
    for (auto step : {&OutputReader::ReadStreams, &OutputReader::ReadRanksFilter,
                      &OutputReader::ReadFilters, &OutputReader::ReadStdin}) {
      if (auto read = (this->*step)(); !read) return std::move(read).error();
    }
    WarnOfHiddenPrompts();
    ReadPrefix();
    return std::move(plan_);
  }

 private:
  // Notes that a setting names local ranks that do not exist.
  void NoteMissing(std::string_view name, std::set<int>& missing) {
    if (missing.empty()) return;
    int workers = context_.workers;
    std::string have = workers == 1 ? "there is local rank 0 only"
                                    : "local ranks are 0 to " + std::to_string(workers - 1);
    std::string why = "in part, for local rank " + std::to_string(*missing.begin()) + ": " + have;
    NoteIgnored(settings_, name, why, plan_.ignored);
  }

  Result<Masks> ReadMasks(std::string_view name) {
    std::string text = settings_.Text(name).value_or("0");
    auto count = static_cast<size_t>(context_.workers);
    if (auto mask = ParseMask(text)) return Masks(count, *mask);
    Masks masks(count, 0);
    std::set<int> missing;
    for (std::string_view part : SplitAtCommas(text)) {
      size_t colon = std::min(part.find(':'), part.size());
      auto local_rank = ParseLocalRank(part.substr(0, colon));
      auto mask = colon == part.size() ? std::nullopt : ParseMask(part.substr(colon + 1));
      if (!local_rank || !mask) {
        return settings_.Wrong(
            name, "want 0, 1, 2 or 3, or such masks by local rank as 0:3,1:2" + Got(text));
      }
      if (*local_rank >= context_.workers) {
        missing.insert(*local_rank);
      } else {
        masks[static_cast<size_t>(*local_rank)] = *mask;
      }
    }
    NoteMissing(name, missing);
    return masks;
  }

  // Reads a list of numbers; nothing if the flag is not set. `kind`: "ranks" or "local ranks".
  Result<std::optional<std::set<int>>> ReadRanks(std::string_view name, const std::string& kind) {
    auto text = settings_.Text(name);
    if (!text || text->empty()) return std::optional<std::set<int>>();
    std::set<int> ranks;
    for (std::string_view part : SplitAtCommas(*text)) {
      auto rank = ParseLocalRank(Stripped(part));
      if (!rank) {
        return settings_.Wrong(name, "want " + kind + " with commas between, as 0,2" + Got(*text));
      }
      ranks.insert(*rank);
    }
    return std::optional(std::move(ranks));
  }

  // A filter without any worker of this node is legal, because other nodes may have more.
  void WarnOfNothingShown(std::string_view name, const std::string& kind) {
    std::string last = std::to_string(context_.workers - 1);
    plan_.warnings.push_back(settings_.OriginOf(name) + " \"" + *settings_.Text(name) +
                             "\" shows no output: the " + kind + " are 0 to " + last);
  }

  // Returns for each local rank whether its output reaches the console.
  Result<std::vector<bool>> ReadLocalRanks() {
    constexpr std::string_view kName = "local-ranks-filter";
    auto listed = ReadRanks(kName, "local ranks");
    if (!listed) return std::move(listed).error();
    auto count = static_cast<size_t>(context_.workers);
    if (!*listed) return std::vector<bool>(count, true);
    std::vector<bool> shown(count, false);
    std::set<int> missing;
    for (int local_rank : **listed) {
      if (local_rank >= context_.workers) {
        missing.insert(local_rank);
      } else {
        shown[static_cast<size_t>(local_rank)] = true;
      }
    }
    NoteMissing(kName, missing);
    if (missing.size() == (*listed)->size()) WarnOfNothingShown(kName, "local ranks");
    return shown;
  }

  Result<void> ReadRanksFilter() {
    constexpr std::string_view kName = "ranks-filter";
    auto listed = ReadRanks(kName, "ranks");
    if (!listed) return std::move(listed).error();
    bool hides_all = *listed && !(*listed)->empty() && *(*listed)->begin() >= context_.workers;
    if (hides_all && !context_.several_nodes) WarnOfNothingShown(kName, "ranks");
    plan_.spec.shown_ranks = std::move(*listed);
    return {};
  }

  // Without its prompt on the console, a worker that reads the input seems to hang.
  void WarnOfHiddenPrompts() {
    const agent::StdinPlan& input = plan_.spec.standard_input;
    auto reader = static_cast<size_t>(input.local_rank);
    bool one_reads = settings_.Text("stdin") && input.reader == agent::StdinPlan::Reader::kOne;
    if (!one_reads || reader >= plan_.spec.workers.size()) return;
    const auto& shown = plan_.spec.shown_ranks;
    bool is_left_out = !context_.several_nodes && shown && !shown->contains(input.local_rank);
    if (plan_.spec.workers.at(reader).standard_output.to_console && !is_left_out) return;
    plan_.warnings.push_back(settings_.OriginOf("stdin") + ": local rank " +
                             std::to_string(input.local_rank) +
                             " reads the input, but its output is not shown");
  }

  Result<void> ReadStreams() {
    auto redirects = ReadMasks("redirects");
    if (!redirects) return std::move(redirects).error();
    auto tee = ReadMasks("tee");
    if (!tee) return std::move(tee).error();
    auto shown = ReadLocalRanks();
    if (!shown) return std::move(shown).error();
    if (plan_.spec.no_files) {
      for (std::string_view name : {"redirects", "tee", "local-ranks-filter"}) {
        NoteIgnored(settings_, name, settings_.OriginOf("log-dir") + " is /dev/null",
                    plan_.ignored);
      }
      return {};
    }
    for (size_t i = 0; i < shown->size(); ++i) {
      auto plan = [&](unsigned stream) -> agent::StreamPlan {
        bool teed = ((*tee)[i] & stream) != 0;
        bool to_file = teed || ((*redirects)[i] & stream) != 0;
        return {.to_console = (teed || !to_file) && (*shown)[i], .to_file = to_file};
      };
      plan_.spec.workers.push_back({plan(kStdout), plan(kStderr)});
    }
    return {};
  }

  Result<void> ReadFilters() {
    for (std::string_view name : {"duplicate-stdout-filters", "duplicate-stderr-filters"}) {
      auto text = settings_.Text(name);
      if (!text || text->empty()) continue;
      if (plan_.spec.no_files) {
        return settings_.Wrong(name, "needs a folder for its file, and " +
                                         settings_.OriginOf("log-dir") + " is /dev/null");
      }
      bool to_stdout = name == "duplicate-stdout-filters";
      (to_stdout ? plan_.spec.stdout_filters : plan_.spec.stderr_filters) = ParseFilters(*text);
    }
    return {};
  }

  Result<void> ReadStdin() {
    std::string text = settings_.Text("stdin").value_or(context_.as_torchrun ? "inherit" : "0");
    using Target = agent::StdinPlan::Reader;
    if (text == "none") {
      plan_.spec.standard_input = {.reader = Target::kNobody};
    } else if (text == "all") {
      plan_.spec.standard_input = {.reader = Target::kAll};
    } else if (text == "inherit") {
      plan_.spec.standard_input = {.reader = Target::kInherit};
    } else {
      auto local_rank = ParseLocalRank(text);
      if (!local_rank || *local_rank >= context_.workers) {
        return settings_.Wrong("stdin", "want none, all, inherit or a local rank from 0 to " +
                                            std::to_string(context_.workers - 1) + Got(text));
      }
      plan_.spec.standard_input = {.reader = Target::kOne, .local_rank = *local_rank};
    }
    return {};
  }

  void ReadPrefix() {
    std::string prefix = settings_.Text("prefix").value_or("auto");
    if (prefix != "auto") {
      NoteIgnored(settings_, kTemplate, "overridden by " + settings_.OriginOf("prefix"),
                  plan_.ignored);
      if (prefix != "none") plan_.spec.prefix = prefix;
      return;
    }
    plan_.spec.prefix_teed_only = context_.as_torchrun;
    if (auto set = settings_.NonEmptyText(kTemplate)) {
      plan_.spec.prefix = *set;
    } else if (auto of_variable = context_.environment(kPrefixVariable)) {
      plan_.spec.prefix = *of_variable;
    } else if (context_.as_torchrun) {
      plan_.spec.prefix = kTorchrunPrefix;
    } else {
      plan_.spec.prefix = context_.workers > 1 || context_.several_nodes ? kRankPrefix : "";
    }
  }

  const Settings& settings_;
  const OutputContext& context_;
  OutputPlan plan_;
};

}  // namespace

Result<OutputPlan> ReadOutput(const Settings& settings, const OutputContext& context) {
  return OutputReader(settings, context).Read();
}

std::vector<std::string> ParseFilters(std::string_view list) {
  std::vector<std::string> texts(1);
  for (size_t i = 0; i < list.size(); ++i) {
    bool comma = list[i] == ',';
    bool twice = comma && list.substr(i).starts_with(",,");
    if (comma && !twice) {
      texts.emplace_back();
    } else {
      texts.back() += list[i];
    }
    if (twice) i += 1;
  }
  return texts;
}

}  // namespace rankrun::launcher

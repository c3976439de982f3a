#include "cli/jobs/stacks_text.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "agent/inspect/request.h"
#include "agent/stacks/stack_text.h"
#include "agent/stacks/stacks_json.h"
#include "base/parse_number.h"
#include "base/printable.h"
#include "base/roll_call.h"
#include "cli/jobs/job_question.h"

namespace rankrun::cli {
namespace {

using agent::kMaxStacksRanks;
using agent::RankProcess;
using agent::StackGroup;
using Json = nlohmann::ordered_json;

std::string LimitInWords(bool are_pids) {
  const std::string limit =
      "one command takes the stacks of at most " + std::to_string(kMaxStacksRanks);
  if (are_pids) return limit + " processes";
  return limit + " ranks; name some, such as rankctl stacks 0-" +
         std::to_string(kMaxStacksRanks - 1) + " or rankctl stacks 3 17";
}

struct Range {
  int first;
  int last;
};

std::optional<Range> RangeOf(const std::string& text) {
  const size_t dash = text.find('-');
  const auto first = RankOf(text.substr(0, dash));
  const auto last = dash == std::string::npos ? first : RankOf(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return Range{*first, *last};
}

std::vector<int> RanksOf(const StackGroup& group) {
  std::vector<int> ranks;
  for (const RankProcess& process : group.ranks) ranks.push_back(process.rank);
  return ranks;
}

// Returns why ranks that no node has named have no stacks.
std::string WhyNoAnswer(const JobAnswers& answers, const std::vector<std::string>& errors) {
  std::string text;
  auto add = [&](const std::string& line) { text += (text.empty() ? "" : "; ") + line; };
  std::ranges::for_each(MissingOf(answers), add);
  std::ranges::for_each(errors, add);
  return text.empty() ? "no node runs it at this moment" : text;
}

std::string OnNode(const RankProcess& process) {
  return process.node.empty() ? "" : " on " + OneLine(process.node);
}

std::string TextOf(const StackGroup& group) {
  const bool has_stacks = !group.stacks.threads.empty();
  std::string text = RanksInWords(RanksOf(group));
  const RankProcess& first = group.ranks.front();
  if (group.ranks.size() == 1) {
    text += OnNode(first);
  } else if (has_stacks) {
    text += " (here " + RanksInWords({first.rank}) + OnNode(first) + ")";
  }
  if (!has_stacks) return text + ": " + OneLine(group.stacks.note) + "\n";
  text += ": " + FormatStacksText(group.stacks);
  const std::string omitted = OmittedInWords(group);
  return omitted.empty() ? text : text + "  " + omitted + "\n";
}

}  // namespace

Result<StackOperands> ParseStackOperands(const std::vector<std::string>& texts, bool are_pids) {
  StackOperands operands;
  for (const std::string& text : texts) {
    const auto range = RangeOf(text);
    if (!range) {
      return Error{ErrorCode::kInvalid, "\"" + text +
                                            "\" is no rank and no pid; want numbers, or a range of "
                                            "ranks such as 0-7"};
    }
    if (are_pids && range->first < range->last) {
      return Error{ErrorCode::kInvalid, text + ": a range names ranks, not pids"};
    }
    operands.has_range |= range->first < range->last;
    const int64_t count = int64_t{range->last} - range->first + 1;
    if (count > static_cast<int64_t>(kMaxStacksRanks)) {
      return Error{ErrorCode::kInvalid,
                   text + " has " + std::to_string(count) + " ranks; " + LimitInWords(are_pids)};
    }
    for (int64_t number = range->first; number <= range->last; ++number) {
      operands.numbers.insert(static_cast<int>(number));
    }
  }
  if (operands.numbers.size() <= kMaxStacksRanks) return operands;
  return Error{ErrorCode::kInvalid, std::to_string(operands.numbers.size()) +
                                        " numbers are given; " + LimitInWords(are_pids)};
}

Result<bool> AreRanks(const StackOperands& operands, int ranks) {
  if (operands.has_range || operands.numbers.empty()) return true;
  const int least = *operands.numbers.begin();
  const int most = *operands.numbers.rbegin();
  if (least >= ranks) return false;
  if (most < ranks) return true;
  return Error{ErrorCode::kInvalid, std::to_string(least) + " is a rank of a job and " +
                                        std::to_string(most) +
                                        " is not; choose with --job or --pid what they are"};
}

Result<std::vector<int>> RanksToAsk(const StackOperands& operands, const std::string& job,
                                    int world_size) {
  std::vector<int> ranks(operands.numbers.begin(), operands.numbers.end());
  if (ranks.empty()) {
    if (static_cast<size_t>(world_size) > kMaxStacksRanks) {
      return Error{ErrorCode::kInvalid, "job " + job + " has " + std::to_string(world_size) +
                                            " ranks; " + LimitInWords(/*are_pids=*/false)};
    }
    for (int rank = 0; rank < world_size; ++rank) ranks.push_back(rank);
  }
  if (ranks.empty() || ranks.back() < world_size) return ranks;
  std::erase_if(ranks, [&](int rank) { return rank < world_size; });
  return Error{ErrorCode::kNotFound, "no " + RanksInWords(ranks) + " in job " + job +
                                         ", which has " + std::to_string(world_size) +
                                         (world_size == 1 ? " rank" : " ranks") +
                                         "; --pid takes pids"};
}

std::vector<int> RanksIn(const NodeAnswer& answer) {
  std::vector<int> ranks;
  const auto groups = agent::DecodeStackGroups(answer.json);
  if (!groups) return ranks;
  for (const StackGroup& group : *groups) {
    for (const RankProcess& process : group.ranks) ranks.push_back(process.rank);
  }
  return ranks;
}

std::vector<StackGroup> StackGroupsOf(const JobAnswers& answers, const std::vector<int>& ranks,
                                      bool names_nodes) {
  std::set<int> open(ranks.begin(), ranks.end());
  std::vector<StackGroup> groups;
  std::vector<std::string> errors;
  for (const NodeAnswer& answer : answers.nodes) {
    auto decoded = agent::DecodeStackGroups(answer.json);
    if (!decoded) {
      errors.push_back(answer.node + ": " + decoded.error().message);
      continue;
    }
    for (StackGroup& group : *decoded) {
      std::erase_if(group.ranks, [&](const RankProcess& rank) { return !open.erase(rank.rank); });
      for (RankProcess& rank : group.ranks) rank.node = names_nodes ? answer.node : "";
      if (!group.ranks.empty()) groups.push_back(std::move(group));
    }
  }
  if (!open.empty()) {
    StackGroup silent{.stacks = {.note = WhyNoAnswer(answers, errors)}};
    for (int rank : open) silent.ranks.push_back({.rank = rank});
    groups.push_back(std::move(silent));
  }
  return agent::MergeStackGroups(std::move(groups));
}

std::string StackGroupsText(const std::vector<StackGroup>& groups) {
  std::string text;
  for (const StackGroup& group : groups) text += (text.empty() ? "" : "\n") + TextOf(group);
  return text;
}

std::string StackGroupsJson(const std::vector<StackGroup>& groups) {
  std::string text;
  for (const StackGroup& group : groups) {
    Json json{{"ranks", RanksOf(group)}, {"processes", Json::array()}};
    for (const RankProcess& process : group.ranks) {
      if (process.pid == 0) continue;
      Json entry{{"rank", process.rank}, {"pid", process.pid}};
      if (!process.node.empty()) entry["node"] = process.node;
      json["processes"].push_back(std::move(entry));
    }
    if (group.omitted_threads > 0) json["omitted_threads"] = group.omitted_threads;
    if (group.omitted_frames > 0) json["omitted_frames"] = group.omitted_frames;
    std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    std::string stacks = FormatStacks(group.stacks);
    stacks.pop_back();  // its newline
    line.insert(line.size() - 1, ",\"stacks\":" + stacks);
    text += line + "\n";
  }
  return text;
}

}  // namespace rankrun::cli

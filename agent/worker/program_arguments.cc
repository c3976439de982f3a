#include "agent/worker/program_arguments.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace rankrun::agent {
namespace {

// Values by the names of placeholders.
using Values = std::map<std::string, std::string, std::less<>>;

bool MayBeginName(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool MayBeInName(char c) { return MayBeginName(c) || (c >= '0' && c <= '9'); }

// A placeholder: "${rank}", or "$local_rank".
struct Placeholder {
  std::string_view name;
  size_t length;  // with dollar and braces
};

// torchrun knows this one without braces. Others may be variables of a shell's code.
constexpr std::string_view kLocalRank = "local_rank";

// Returns the placeholder at the start of `text`, if there is one.
std::optional<Placeholder> PlaceholderAt(std::string_view text) {
  bool braces = text.starts_with("${");
  size_t begin = braces ? 2 : 1;
  if (text.size() <= begin || !MayBeginName(text[begin])) return std::nullopt;
  size_t end = begin;
  while (end < text.size() && MayBeInName(text[end])) end += 1;
  if (braces && !text.substr(end).starts_with('}')) return std::nullopt;
  const std::string_view name = text.substr(begin, end - begin);
  if (!braces && name != kLocalRank) return std::nullopt;
  return Placeholder{name, braces ? end + 1 : end};
}

std::string Replaced(std::string_view text, const Values& values, bool halve_dollars) {
  std::string result;
  while (!text.empty()) {
    size_t dollar = std::min(text.find('$'), text.size());
    result += text.substr(0, dollar);
    text.remove_prefix(dollar);
    size_t taken = std::min<size_t>(text.starts_with("$$") ? 2 : 1, text.size());
    auto placeholder = PlaceholderAt(text);
    auto value = placeholder ? values.find(placeholder->name) : values.end();
    if (value != values.end()) {
      result += value->second;
      taken = placeholder->length;
    } else {
      result += text.substr(0, halve_dollars ? std::min<size_t>(taken, 1) : taken);
    }
    text.remove_prefix(taken);
  }
  return result;
}

Values ValuesOf(const JobSpec& spec, int local_rank, const std::optional<NodePlace>& place) {
  Values values = {{std::string(kLocalRank), std::to_string(local_rank)}};
  if (spec.program.as_torchrun) return values;
  values["hostname"] = spec.host_name;
  if (!place) return values;
  values["rank"] = std::to_string(place->first_rank + local_rank);
  values["node_rank"] = std::to_string(place->node_rank);
  values["world_size"] = std::to_string(place->world_size);
  return values;
}

}  // namespace

std::vector<std::string> ArgumentsFor(const JobSpec& spec, int local_rank,
                                      const std::optional<NodePlace>& place) {
  const Values values = ValuesOf(spec, local_rank, place);
  std::vector<std::string> arguments = spec.program.arguments;
  for (size_t i = 1; i < arguments.size(); ++i) {
    arguments[i] = Replaced(arguments[i], values, spec.program.as_torchrun);
  }
  return arguments;
}

}  // namespace rankrun::agent

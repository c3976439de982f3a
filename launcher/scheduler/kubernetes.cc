#include "launcher/scheduler/kubernetes.h"

#include <sstream>

#include "base/parse_number.h"
#include "launcher/flags/text.h"

namespace rankrun::launcher {
namespace {

constexpr const char* kIndex = "JOB_COMPLETION_INDEX";
constexpr uint16_t kPort = 29400;

// Returns the rest of this host's full name behind its short name, for example
// ".train.default.svc.cluster.local"; empty if the pod has no subdomain.
std::string DomainOf(const std::string& host_name, const std::string& hosts_file) {
  std::istringstream lines(hosts_file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    for (std::string word; words >> word;) {
      if (word.starts_with(host_name + ".")) return word.substr(host_name.size());
    }
  }
  return "";
}

}  // namespace

std::optional<Scheduler> ReadKubernetes(const SchedulerSources& sources) {
  auto text = sources.environment(kIndex);
  auto index = text ? ParseNumber<int>(*text) : std::nullopt;
  if (!index || *index < 0) return std::nullopt;
  Scheduler result;
  result.node_index = SourcedValue<int>{*index, kIndex};
  result.no_nodes = std::string(kIndex) +
                    ": this is a pod of an indexed job, which does not give the number of pods; "
                    "want --nnodes N, or --standalone for a job in each pod";
  std::string ending = "-" + *text;
  if (!sources.host_name.ends_with(ending)) {
    result.no_endpoint = std::string(kIndex) + ": want a host name that ends in " + ending +
                         Got(sources.host_name) + "; or --rdzv-endpoint HOST:PORT";
    return result;
  }
  std::string job = sources.host_name.substr(0, sources.host_name.size() - ending.size());
  result.job = SourcedValue<std::string>{job, "the host's name"};
  std::string domain = DomainOf(sources.host_name, sources.hosts_file());
  if (domain.empty()) {
    result.no_endpoint = std::string(kIndex) +
                         ": without a subdomain (a headless service) other pods have no names; "
                         "want one, or --rdzv-endpoint HOST:PORT";
    return result;
  }
  result.endpoint =
      SourcedValue<agent::Endpoint>{agent::Endpoint{job + "-0" + domain, kPort}, "/etc/hosts"};
  return result;
}

}  // namespace rankrun::launcher

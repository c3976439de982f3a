#include "launcher/kubernetes.h"

#include <sstream>

#include "launcher/text.h"

namespace rankrun::launcher {
namespace {

constexpr const char* kIndex = "JOB_COMPLETION_INDEX";
constexpr uint16_t kPort = 29400;

// What stands behind this host's name in its full name, ".train.default.svc...";
// empty: there is no full name, since the pod has no subdomain.
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
  result.node_index = Said<int>{*index, kIndex};
  result.no_nodes = std::string(kIndex) +
                    ": this is a pod of an indexed job, which does not say how many there are; "
                    "want --nnodes N, or --standalone for a job in each pod";
  std::string ending = "-" + *text;
  if (!sources.host_name.ends_with(ending)) {
    result.no_endpoint = std::string(kIndex) + ": want a host name that ends in " + ending +
                         Got(sources.host_name) + "; or --rdzv-endpoint HOST:PORT";
    return result;
  }
  std::string job = sources.host_name.substr(0, sources.host_name.size() - ending.size());
  result.job = Said<std::string>{job, "the host's name"};
  std::string domain = DomainOf(sources.host_name, sources.hosts_file());
  if (domain.empty()) {
    result.no_endpoint = std::string(kIndex) +
                         ": without a subdomain (a headless service) other pods have no names; "
                         "want one, or --rdzv-endpoint HOST:PORT";
    return result;
  }
  result.endpoint =
      Said<agent::Endpoint>{agent::Endpoint{job + "-0" + domain, kPort}, "/etc/hosts"};
  return result;
}

}  // namespace rankrun::launcher

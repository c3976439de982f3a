#include "launcher/show/explain_nodes.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/format.h"
#include "base/net/host_port.h"

namespace rankrun::launcher {
namespace {

std::string CountText(const agent::NodesSpec& nodes) {
  std::string text = std::to_string(nodes.min);
  if (nodes.max != nodes.min) text += " to " + std::to_string(nodes.max);
  return text + "; further nodes are spares";
}

std::string ThisNodeText(const agent::NodesSpec& nodes) {
  std::string text = nodes.node_name;
  if (nodes.node_rank) {
    text += ", claims node rank " + std::to_string(*nodes.node_rank);
  } else if (nodes.node_index) {
    text += ", index " + std::to_string(*nodes.node_index) + " in the scheduler's list";
  }
  if (!nodes.local_addr.empty()) text += ", reached at " + nodes.local_addr;
  return text;
}

std::string EndpointsText(const agent::NodesSpec& nodes) {
  std::string text;
  for (const agent::Endpoint& endpoint : nodes.endpoints) {
    text += (text.empty() ? "" : ", ") + HostPortText(endpoint.host, endpoint.port);
  }
  text += " (" + nodes.endpoint_origin + "), ";
  if (!nodes.is_host) return text + "on the node that has this address";
  return text + (*nodes.is_host ? "on this node" : "on another node");
}

std::string TimesText(const agent::NodesSpec& nodes) {
  return FormatSeconds(nodes.join_timeout) + " to meet, " + FormatSeconds(nodes.last_call) +
         " more for nodes above the minimum, " + FormatSeconds(nodes.finish_timeout) +
         " from the first exit to the last";
}

std::string LostText(const agent::NodesSpec& nodes) {
  bool restarts = nodes.on_lost_node == agent::LostNode::kRestart;
  return "after " + FormatSeconds(nodes.node_timeout) + " of silence; then " +
         (restarts ? "the others restart if they are enough" : "the job ends");
}

std::string BadText(const agent::NodesSpec& nodes) {
  if (nodes.replace_after == 0) return "keep their places";
  return "change places with an idle spare after " + std::to_string(nodes.replace_after) +
         (nodes.replace_after == 1 ? " failure" : " failures in a row");
}

}  // namespace

std::vector<std::vector<std::string>> NodesRows(const agent::NodesSpec& nodes) {
  return {{"nodes", CountText(nodes)},
          {"this node", ThisNodeText(nodes)},
          {"rendezvous", EndpointsText(nodes)},
          {"times", TimesText(nodes)},
          {"lost nodes", LostText(nodes)},
          {"bad nodes", BadText(nodes)},
          {"secret", nodes.secret.empty() ? "none" : "from " + nodes.secret_origin}};
}

bool IsOfRound(const agent::NodesSpec& nodes, const std::string& variable) {
  constexpr std::array<std::string_view, 6> kNames = {
      "RANK", "WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"};
  if (variable == "MASTER_ADDR") return !nodes.shares_port;
  return std::ranges::find(kNames, variable) != kNames.end();
}

}  // namespace rankrun::launcher

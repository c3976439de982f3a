#include "agent/control/control_dial.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/format.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookupTimeout{5000};
constexpr milliseconds kHeadStart{250};  // time of each address before the next one

std::pair<DialFailureKind, std::string> Classify(int errno_value, milliseconds timeout) {
  switch (errno_value) {
    case ECONNREFUSED:
      return {DialFailureKind::kRefused, "connection refused: nothing listens there"};
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return {DialFailureKind::kNoRoute,
              SystemError("no route from this node, or the host is down", errno_value).message};
    case ETIMEDOUT:
      return {DialFailureKind::kFiltered,
              "no answer within " + FormatSeconds(timeout) +
                  ": a firewall drops the packets, or the host is down"};
    case EPERM:
    case EACCES:
      return {DialFailureKind::kFiltered,
              SystemError("a firewall of this node forbids it", errno_value).message};
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
      return {DialFailureKind::kReset,
              SystemError("the connection broke at once", errno_value).message};
    default:
      return {DialFailureKind::kThisNode,
              SystemError("this node cannot connect", errno_value).message};
  }
}

}  // namespace

ControlDial::ControlDial(Loop& loop, const Endpoint& endpoint, size_t first,
                         milliseconds connect_timeout, OnDone on_done)
    : loop_(loop),
      endpoint_(endpoint),
      first_(first),
      connect_timeout_(connect_timeout),
      on_done_(std::move(on_done)),
      timer_(loop, [this] { OnTimer(); }) {
  if (auto numeric = SocketAddress::FromNumeric(endpoint.host, endpoint.port)) {
    addresses_.push_back(*numeric);
    timer_.Start(milliseconds(0));
    return;
  }
  lookup_ = std::make_unique<NameLookup>(
      loop, endpoint.host, endpoint.port,
      [this](Result<std::vector<SocketAddress>> found) { OnLookedUp(std::move(found)); });
  timer_.Start(kLookupTimeout);
}

ControlDial::~ControlDial() = default;

void ControlDial::OnLookedUp(Result<std::vector<SocketAddress>> found) {
  if (done_) return;
  if (!found || found->empty()) {
    return Finish(DialFailure{DialFailureKind::kNameLookup, endpoint_, "",
                              found ? "its name has no address" : found.error().message});
  }
  addresses_ = std::move(*found);
  auto first = static_cast<std::ptrdiff_t>(first_ % addresses_.size());
  std::rotate(addresses_.begin(), addresses_.begin() + first, addresses_.end());
  TryNext();
}

void ControlDial::OnTimer() {
  if (!addresses_.empty()) return TryNext();
  Finish(
      DialFailure{DialFailureKind::kNameLookup, endpoint_, "",
                  "no answer to the look-up of its name within " + FormatSeconds(kLookupTimeout)});
}

void ControlDial::TryNext() {
  size_t index = connectors_.size();
  if (index == addresses_.size()) return;
  connectors_.push_back(
      std::make_unique<Connector>(loop_, addresses_[index], connect_timeout_,
                                  [this, index](Result<std::unique_ptr<Stream>> connected) {
                                    OnConnected(index, std::move(connected));
                                  }));
  timer_.Start(kHeadStart);
}

void ControlDial::OnConnected(size_t index, Result<std::unique_ptr<Stream>> connected) {
  if (done_) return;
  if (connected) return Finish(std::move(*connected));
  auto [kind, why] = Classify(connectors_[index]->failure(), connect_timeout_);
  if (!nearest_ || kind > nearest_->kind) {
    nearest_ = DialFailure{kind, endpoint_, addresses_[index].ToString(), std::move(why)};
  }
  failed_ += 1;
  if (failed_ == addresses_.size()) return Finish(*nearest_);
  if (failed_ == connectors_.size()) TryNext();
}

void ControlDial::Finish(DialResult result) {
  done_ = true;
  timer_.Stop();
  on_done_(std::move(result));
}

}  // namespace rankrun::agent

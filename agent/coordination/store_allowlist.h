#pragma once

#include <string>
#include <vector>

#include "base/net/address_range.h"
#include "base/net/socket_address.h"

// Addresses from which the workers of a round connect to its store. Pure.
namespace rankrun::agent {

struct NodeAddresses {
  std::vector<std::string> addresses;
  std::string problem;  // "has ..."; empty: `addresses` are those that the node reported
};

// Returns `own`, the addresses that a node reports, with `peer`, from which the
// node connected, first. If they cannot be right, returns `peer` alone: it is
// not among them (address translation), one is invalid, or there are too many.
// `dialled`: numeric address to which the node connected, or empty. If it equals
// `peer`, a gateway passes the connection on under its own address; the node
// reaches the store from `own`, which is right, then.
NodeAddresses RelevantAddresses(std::vector<std::string> own, const SocketAddress& peer,
                                const std::string& dialled = "");

// Returns the addresses of all nodes, each once, or only the first of each node
// if all do not fit into a message. Empty if not even these fit, or if those of
// a node are unknown.
std::vector<std::string> AddressesOfAll(const std::vector<const std::vector<std::string>*>& nodes);

// Returns the ranges of `clients` and of the store's own host, whose addresses
// are `own`. Empty, which admits all, without `clients` or with an invalid one.
std::vector<AddressRange> ClientRanges(const std::vector<std::string>& clients,
                                       const std::vector<std::string>& own);

}  // namespace rankrun::agent

#pragma once

#include <string>
#include <vector>

#include "base/net/address_range.h"
#include "base/net/socket_address.h"

// Addresses from which the workers of a round connect to its store. An empty
// list means that they are unknown, so that the store accepts all. Pure.
namespace rankrun::agent {

// Returns `own`, the addresses that a node reports, or nothing if they are no
// use: `peer`, from which the node connected, is not among them (NAT), or there
// are too many.
std::vector<std::string> RelevantAddresses(std::vector<std::string> own, const AddressBytes& peer);

// Returns the addresses of all nodes, each once; nothing if those of one node
// are unknown or if they do not fit into a message.
std::vector<std::string> AddressesOfAll(const std::vector<const std::vector<std::string>*>& nodes);

// Returns the ranges of `clients` and of the store's own host, whose addresses
// are `own`.
std::vector<AddressRange> ClientRanges(const std::vector<std::string>& clients,
                                       const std::vector<std::string>& own);

}  // namespace rankrun::agent

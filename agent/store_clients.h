#pragma once

#include <string>
#include <vector>

#include "base/address_range.h"
#include "base/socket_address.h"

// From where the workers of a round come to its store. Nothing means: not
// known, from everywhere. Pure.
namespace rankrun::agent {

// `own`: what a node says are its addresses; `peer`: the one by which it came.
// Nothing if they tell little of where its workers will come from: it came by
// another one, as from behind a router that translates, or there are very many.
std::vector<std::string> RelevantAddresses(std::vector<std::string> own, const AddressBytes& peer);

// Those of all nodes, each once; nothing if one node's are not known, or if
// they are too many for a message.
std::vector<std::string> AddressesOfAll(const std::vector<const std::vector<std::string>*>& nodes);

// Of `clients`, and the store's own host with the addresses `own`.
std::vector<AddressRange> ClientRanges(const std::vector<std::string>& clients,
                                       const std::vector<std::string>& own);

}  // namespace rankrun::agent

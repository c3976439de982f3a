#pragma once

#include <string>

#include "base/result.h"

// Secrets handed over by munge, which SLURM's hosts have: a credential can be
// opened on every host of the cluster, but only by the user who made it.
// libmunge is loaded on first use, so that rankrun starts without it.
// Thread: any.  These functions block while the daemon (munged) does not answer,
// for some seconds at most.
// Source: munge(7), munge.h.
namespace rankrun::agent {

// Returns a credential with `secret` that only processes of this user can open.
// `socket`: that of munged; empty: the default one.
// Errors: kNotFound if libmunge or munged is not there; kSystem.
Result<std::string> MakeCredential(const std::string& secret, const std::string& socket = "");

// Returns the secret in a credential of this user. Its age does not count,
// because the nonces of a handshake keep it fresh.
// Errors: as above; kInvalid for a credential of another user, or for other
// bytes.
Result<std::string> OpenCredential(const std::string& credential, const std::string& socket = "");

}  // namespace rankrun::agent

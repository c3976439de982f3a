#pragma once

#include <string>
#include <string_view>

#include "agent/coordination/control_message.h"
#include "agent/coordination/coordinator_record.h"
#include "base/result.h"

namespace rankrun::agent {

// Encode a message as a CBOR map. A receiver ignores fields that it does not
// know.
std::string Encode(const MemberMessage& message);
std::string Encode(const CoordinatorMessage& message);
std::string Encode(const CoordinatorRecord& record);

// Errors: kProtocol, with the reason.
Result<MemberMessage> DecodeMemberMessage(std::string_view bytes);
Result<CoordinatorMessage> DecodeCoordinatorMessage(std::string_view bytes);
Result<CoordinatorRecord> DecodeCoordinatorRecord(std::string_view bytes);

}  // namespace rankrun::agent

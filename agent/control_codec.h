#pragma once

#include <string>
#include <string_view>

#include "agent/control_message.h"
#include "agent/coordinator_record.h"
#include "base/result.h"

namespace rankrun::agent {

// Messages as CBOR maps; a receiver ignores fields that it does not know.
std::string Encode(const MemberMessage& message);
std::string Encode(const CoordinatorMessage& message);
std::string Encode(const CoordinatorRecord& record);

// Errors: kProtocol, which says what is wrong.
Result<MemberMessage> DecodeMemberMessage(std::string_view bytes);
Result<CoordinatorMessage> DecodeCoordinatorMessage(std::string_view bytes);
Result<CoordinatorRecord> DecodeCoordinatorRecord(std::string_view bytes);

}  // namespace rankrun::agent

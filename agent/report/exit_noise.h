#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Lines that Python and PyTorch write after the exception with which a program ends: warnings
// about what it has not closed, and exceptions of destructors. Pure.
namespace rankrun::agent {

// Removes the "[rank3]: " that PyTorch writes before each line of a traceback.
std::string_view WithoutRank(std::string_view line);

// Returns whether a line begins a traceback of this program.
bool IsTraceback(std::string_view line);

// Returns whether a line begins the traceback of another rank, in a text of
// torch.distributed.checkpoint.
bool IsTracebackOfPeer(std::string_view line);

// Returns the line of the exception that follows the frames of the traceback at `header`;
// the number of lines if it is cut off.
size_t ExceptionAfter(const std::vector<std::string>& lines, size_t header);

// Removes such lines after the last traceback. Without one, they may be the error.
std::vector<std::string> WithoutExitNoise(std::vector<std::string> lines);

}  // namespace rankrun::agent

#pragma once

#include <string>
#include <string_view>

// Marked text: the form in which the table has its texts, so that --help and
// the man page can share them. `literal` stands between backquotes, _VALUE_ (a
// placeholder, which begins with a capital) between underscores, and an empty
// line separates paragraphs. All other characters stand for themselves. Pure.
namespace rankrun::launcher {

// Returns the text without its marks.
std::string PlainText(std::string_view marked);

// Returns one paragraph as one line of man(7): literals in bold, values in
// italics.
std::string ManLine(std::string_view paragraph);

// Returns all paragraphs in lines of at most 80 characters. `separator` is the
// request between two paragraphs: ".PP", or ".IP" within a list.
std::string ManParagraphs(std::string_view marked, std::string_view separator);

}  // namespace rankrun::launcher

// Text from others in the output of the programs: names in traces, paths, arguments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace fragtrace {

// Whether the text begins with a character that changes the writing direction or breaks the line:
// U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069.
inline bool turns_text(std::string_view text) {
    if (text.starts_with("\xd8\x9c")) {
        return true;
    }
    if (text.size() < 3 || text[0] != '\xe2') {
        return false;
    }
    const auto last = static_cast<unsigned char>(text[2]);
    return text[1] == '\x80' ? last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae)
                             : text[1] == '\x81' && last >= 0xa6 && last <= 0xa9;
}

// The length in bytes of the first character of `text`; 0 if it is a control character or not valid
// UTF-8.
inline std::size_t shown_bytes(std::string_view text) {
    const auto byte = [text](std::size_t at) {
        return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
    };
    const unsigned lead = byte(0);
    if (lead < 0x80) {
        return lead < 0x20 || lead == 0x7f ? 0 : 1;
    }
    const std::size_t length = lead < 0xc2 || lead > 0xf4 ? 0
                               : lead < 0xe0              ? 2
                               : lead < 0xf0              ? 3
                                                          : 4;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0u) != 0x80) {
            return 0;
        }
    }
    // Overlong encodings. The return statement also rejects U+0080 to U+009F.
    const bool too_long = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
    // Surrogates, and values beyond Unicode.
    const bool no_character = (lead == 0xed && byte(1) >= 0xa0) || (lead == 0xf4 && byte(1) > 0x8f);
    return too_long || no_character || (lead == 0xc2 && byte(1) < 0xa0) || turns_text(text)
               ? 0
               : length;
}

// Appends one character that is not shown as an escape such as \u202e or \n, and removes it from
// `text`. False: it is not valid UTF-8.
inline bool take_escape(std::string_view* text, std::string* result) {
    const auto at = [text](std::size_t i) { return static_cast<unsigned char>((*text)[i]); };
    std::size_t length = 1;
    unsigned code = at(0);
    if (turns_text(*text) || (code == 0xc2 && text->size() > 1 && (at(1) & 0xe0u) == 0x80)) {
        length = code < 0xe0 ? 2 : 3;
        code &= code < 0xe0 ? 0x1fu : 0x0fu;
        for (std::size_t i = 1; i < length; ++i) {
            code = code << 6 | (at(i) & 0x3fu);
        }
    } else if (code >= 0x80) {
        return false;
    }
    if (code == '\n' || code == '\t') {
        *result += code == '\n' ? "\\n" : "\\t";
    } else {
        *result += "\\u";
        for (int shift = 12; shift >= 0; shift -= 4) {
            *result += "0123456789abcdef"[code >> shift & 0xfu];
        }
    }
    text->remove_prefix(length);
    return true;
}

// Replaces characters that are not shown by escapes.
// `kept(text)`: so many bytes at the start of the text stay, although they are not shown.
// `invalid(byte)`: what stands for a byte that is not valid UTF-8.
template <typename Kept, typename Invalid>
std::string escaped(std::string_view text, Kept kept, Invalid invalid) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        std::size_t length = shown_bytes(text);
        if (length == 0) {
            length = kept(text);
        }
        if (length != 0) {
            result += text.substr(0, length);
            text.remove_prefix(length);
        } else if (!take_escape(&text, &result)) {
            result += invalid(text[0]);
            text.remove_prefix(1);
        }
    }
    return result;
}

// Makes text safe to print on one line. Control characters, U+0080 to U+009F and characters that
// change the writing direction or break the line become escapes: "\u202e". They could move the
// cursor, change the terminal's state or fake a line. A byte that is not valid UTF-8 becomes "?".
inline std::string printable(std::string_view text) {
    return escaped(
        text, [](std::string_view) { return std::size_t{0}; }, [](char) { return '?'; });
}

// Quotes a text, such as a path, so that a shell reads it back (bash, zsh: $'...' for characters
// that are not shown) and that it is safe to print.
inline std::string shell_quoted(std::string_view text) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:,@%";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
        return std::string(text);
    }
    const bool escapes = printable(text) != text;
    std::string result = escapes ? "$'" : "'";
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = shown_bytes(text.substr(at));
        if (length == 0) {
            const auto byte = static_cast<unsigned char>(text[at]);
            result += '\\';
            for (const int shift : {6, 3, 0}) {
                result += "01234567"[byte >> shift & 7];
            }
        } else if (escapes && (text[at] == '\'' || text[at] == '\\')) {
            result += {'\\', text[at]};
        } else if (text[at] == '\'') {
            result += "'\\''";
        } else {
            result += text.substr(at, length);
        }
        at += std::max<std::size_t>(length, 1);
    }
    return result + "'";
}

}  // namespace fragtrace

#include "launcher/own_text.h"

#include <fragtrace/printable.h>

#include "launcher/refusal.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace fragtrace::launcher {
namespace {

// printable() replaces control characters, so no text of others can contain a mark.
constexpr char kBegin = '\x01';
constexpr char kEnd = '\x02';

// Words that are the same on many machines, in lower case, each between two spaces.
constexpr std::string_view kWords =
    // values of switches and choices
    " on off yes no true false all none native python default lazy eager fastest first pci bus id "
    "gpu mig void compute utility graphics video display ngx platform bfc cuda malloc async "
    "hup usr1 usr2 urg winch io pwr sighup sigusr1 sigusr2 sigurg sigwinch sigio sigpwr "
    // settings of PyTorch's allocator
    "backend cudamallocasync cudamalloc expandable segments segment max split size large rounding "
    "non roundup power2 divisions bypass garbage collection threshold pinned use host register "
    "reserve num threads background release lock graph capture record stream reuse per process "
    "memory fraction throw oom "
    // folders and files of the system
    "tmp var dev shm usr bin sbin lib lib64 local opt etc proc run linux gnu libcuda libfragtrace "
    "so conda venv "
    // what the loader and the shell say
    "cannot open shared object file such or directory too short invalid elf header wrong class not "
    "found command is a driver "
    // kernels, distributions, containers, interpreters
    "x86 64 amd64 aarch64 arm64 generic lowlatency microsoft standard wsl2 debian ubuntu fedora "
    "rhel centos rocky almalinux sles opensuse leap tumbleweed arch nixos alpine docker podman oci "
    "lxc systemd nspawn apptainer singularity kubernetes cpython pypy fragtrace virtual unknown ";
// What comes before or after the digits of a word.
constexpr std::string_view kBeforeDigits[] = {
    "cu", "rocm", "rc", "a", "b", "dev", "post", "el", "fc", "python", "v", "deb"};
constexpr std::string_view kAfterDigits[] = {"b",
                                             "k",
                                             "kb",
                                             "kib",
                                             "m",
                                             "mb",
                                             "mib",
                                             "g",
                                             "gb",
                                             "gib",
                                             "t",
                                             "tb",
                                             "tib",
                                             "s",
                                             "ms",
                                             "min",
                                             "h",
                                             "d"};

template <typename List>
bool has(const List& list, std::string_view word) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool is_digit(char c) {
    return isdigit(static_cast<unsigned char>(c)) != 0;
}

// "80gib" and "cu124", also "2rc1".
bool is_number(std::string_view word) {
    const auto letters = [&word] {
        const auto* const end =
            std::find_if(word.begin(), word.end(), [](char c) { return is_digit(c); });
        const std::string_view found = word.substr(0, static_cast<std::size_t>(end - word.begin()));
        word.remove_prefix(found.size());
        return found;
    };
    const std::string_view before = letters();
    const std::size_t digits = std::min(
        word.size(),
        static_cast<std::size_t>(
            std::find_if_not(word.begin(), word.end(), [](char c) { return is_digit(c); }) -
            word.begin()));
    word.remove_prefix(digits);
    const bool known = digits > 0 && digits <= 12 && (before.empty() || has(kBeforeDigits, before));
    return known && (word.empty() || has(kAfterDigits, word) || is_number(word));
}

bool is_same_on_many_machines(std::string_view text) {
    constexpr std::string_view kBetween = " .,:;-_+=/'\"()[]<>%*#";
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = std::min(text.find_first_not_of(kBetween, at), text.size());
        const std::size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
        std::string word(text.substr(begin, end - begin));
        std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) {
            return static_cast<char>(tolower(c));
        });
        if (!word.empty() && kWords.find(' ' + word + ' ') == std::string_view::npos &&
            !is_number(word)) {
            return false;
        }
        at = end;
    }
    return true;
}

}  // namespace

std::string own(std::string_view text) {
    std::string line = printable(text);
    return is_same_on_many_machines(line) ? line : kBegin + line + kEnd;
}

std::string plain(std::string_view sentence) {
    std::string text(sentence);
    std::erase_if(text, [](char c) { return c == kBegin || c == kEnd; });
    return text;
}

std::string hidden(std::string_view sentence) {
    std::string text;
    while (!sentence.empty()) {
        const std::size_t begin = std::min(sentence.find(kBegin), sentence.size());
        text += sentence.substr(0, begin);
        if (begin < sentence.size()) {
            text += "<hidden>";
        }
        sentence.remove_prefix(std::min(sentence.find(kEnd, begin), sentence.size() - 1) + 1);
    }
    return text;
}

}  // namespace fragtrace::launcher

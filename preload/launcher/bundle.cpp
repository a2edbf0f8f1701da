#include "launcher/bundle.h"

#include "launcher/refusal.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <pwd.h>
#include <string_view>
#include <unistd.h>
#include <zlib.h>

namespace fragtrace::launcher {
namespace {

constexpr std::size_t kBlock_bytes = 512;

bool in_word(char c) {
    return isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

void replace_all(std::string* text, const std::string& from, std::string_view to, bool words) {
    if (from.size() < 2 && from != "~") {
        return;
    }
    for (std::size_t at = text->find(from); at != std::string::npos; at = text->find(from, at)) {
        const std::size_t end = at + from.size();
        if (words && ((at > 0 && in_word((*text)[at - 1])) ||
                      (end < text->size() && in_word((*text)[end])))) {
            at = end;
            continue;
        }
        text->replace(at, from.size(), to);
        at += to.size();
    }
}

// Folders whose names are the same on many machines.
bool is_of_system(std::string_view path) {
    constexpr std::array<std::string_view, 9> kFolders = {
        "/usr", "/lib", "/lib64", "/bin", "/sbin", "/dev", "/proc", "/sys", "/etc"};
    return path == "/tmp" || std::any_of(kFolders.begin(), kFolders.end(), [&](auto folder) {
               return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
           });
}

void replace_paths(std::string* text) {
    constexpr std::string_view kEnds = " \t\n'\"(),;:=<>|";
    for (std::size_t at = 0; at < text->size();) {
        const bool begins = at == 0 || kEnds.find((*text)[at - 1]) != std::string_view::npos;
        const char c = (*text)[at];
        if (!begins || (c != '/' && (c != '~' || text->substr(at + 1, 1) != "/"))) {
            ++at;
            continue;
        }
        std::size_t end = std::min(text->find_first_of(kEnds, at), text->size());
        while (end > at + 1 && (*text)[end - 1] == '.') {  // the end of a sentence
            --end;
        }
        const std::string_view path = std::string_view(*text).substr(at, end - at);
        constexpr std::string_view kName = "<path>";
        if (path.size() > 1 && !is_of_system(path)) {
            text->replace(at, end - at, kName);
            end = at + kName.size();
        }
        at = end;
    }
}

// Cards have a unique id: GPU-01234567-...
void replace_card_ids(std::string* text) {
    for (const std::string_view begin : {"GPU-", "MIG-"}) {
        for (std::size_t at = text->find(begin); at != std::string::npos;
             at = text->find(begin, at)) {
            at += begin.size();
            std::size_t end = at;
            while (end < text->size() && (isxdigit(static_cast<unsigned char>((*text)[end])) != 0 ||
                                          (*text)[end] == '-')) {
                ++end;
            }
            if (end - at >= 8) {
                text->replace(at, end - at, "<id>");
            }
        }
    }
}

std::array<char, kBlock_bytes> tar_header(const std::string& name, std::uint64_t size_bytes) {
    std::array<char, kBlock_bytes> header = {};
    const auto put = [&header](std::size_t at, std::size_t room, const std::string& text) {
        memcpy(header.data() + at, text.data(), std::min(room, text.size()));
    };
    char size[13];
    snprintf(size, sizeof size, "%011llo", static_cast<unsigned long long>(size_bytes));
    put(0, 100, "fragtrace-report/" + name);
    put(100, 8, "0000600");
    put(108, 8, "0000000");  // owner and group: none
    put(116, 8, "0000000");
    put(124, 12, size);
    put(136, 12, "00000000000");  // no time: files of one report are equal
    put(148, 8, "        ");
    put(156, 1, "0");
    put(257, 8, std::string("ustar\00000", 8));
    unsigned sum = 0;
    for (const char c : header) {
        sum += static_cast<unsigned char>(c);
    }
    char checksum[9];
    snprintf(checksum, sizeof checksum, "%06o", sum);
    put(148, 7, std::string(checksum) + '\0');
    return header;
}

class Archive {
  public:
    explicit Archive(const std::string& path) : path_(path) {
        const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0) {
            throw Refusal{kBadUsage,
                          one_line(path) + ": " + strerror(errno) +
                              (errno == EEXIST ? "; name another file, or remove it first" : "")};
        }
        file_ = gzdopen(fd, "wb");
        if (file_ == nullptr) {
            close(fd);
            unlink(path.c_str());
            throw Refusal{kBadUsage, "not enough memory to write " + one_line(path)};
        }
    }

    ~Archive() {
        if (file_ != nullptr) {  // not finished
            gzclose(file_);
            unlink(path_.c_str());
        }
    }

    Archive(const Archive&) = delete;
    Archive& operator=(const Archive&) = delete;

    void add(const BundleFile& file) {
        if (file.source.empty()) {
            put(tar_header(file.name, file.content.size()).data(), kBlock_bytes);
            put(file.content.data(), file.content.size());
            pad(file.content.size());
            return;
        }
        std::ifstream from(file.source, std::ios::binary);
        std::error_code failed;
        const std::uint64_t size = std::filesystem::file_size(file.source, failed);
        put(tar_header(file.name, size).data(), kBlock_bytes);
        std::array<char, 65536> buffer;
        for (std::uint64_t left = size; left > 0;) {
            from.read(buffer.data(),
                      static_cast<std::streamsize>(std::min<std::uint64_t>(left, buffer.size())));
            if (from.gcount() <= 0) {
                throw Refusal{kBadUsage, one_line(file.source) + ": cannot be read"};
            }
            put(buffer.data(), static_cast<std::size_t>(from.gcount()));
            left -= static_cast<std::uint64_t>(from.gcount());
        }
        pad(size);
    }

    void finish() {
        const std::array<char, 2 * kBlock_bytes> end = {};
        put(end.data(), end.size());
        const int result = gzclose(file_);
        file_ = nullptr;
        if (result != Z_OK) {
            unlink(path_.c_str());
            refuse();
        }
    }

  private:
    void put(const char* bytes, std::size_t size) {
        if (size != 0 && gzfwrite(bytes, 1, size, file_) != size) {
            refuse();
        }
    }

    void pad(std::uint64_t size) {
        const std::array<char, kBlock_bytes> zeros = {};
        put(zeros.data(), (kBlock_bytes - size % kBlock_bytes) % kBlock_bytes);
    }

    [[noreturn]] void refuse() {
        throw Refusal{kBadUsage, one_line(path_) + " cannot be written: " + strerror(errno)};
    }

    std::string path_;
    gzFile file_ = nullptr;
};

}  // namespace

std::string without_names(std::string text) {
    std::error_code failed;
    const passwd* user = getpwuid(geteuid());
    for (const char* folder : {getenv("HOME"), user == nullptr ? nullptr : user->pw_dir}) {
        if (folder != nullptr && std::string_view(folder).size() > 1) {
            replace_all(&text, folder, "~", true);
        }
    }
    // With a space in its name, the current folder would not be recognised as a path.
    const std::string here = std::filesystem::current_path(failed).native();
    if (here.size() > 1 && !is_of_system(here)) {
        replace_all(&text, here, "~/here", false);
    }
    replace_paths(&text);
    replace_card_ids(&text);
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    const std::string whole = host;
    replace_all(&text, whole, "<host>", true);
    replace_all(&text, whole.substr(0, whole.find('.')), "<host>", true);
    for (const char* name :
         {getenv("USER"), getenv("LOGNAME"), user == nullptr ? nullptr : user->pw_name}) {
        if (name != nullptr) {
            replace_all(&text, name, "<user>", true);
        }
    }
    return text;
}

void write_bundle(const std::string& path, const std::vector<BundleFile>& files) {
    Archive archive(path);
    for (const BundleFile& file : files) {
        archive.add(file);
    }
    archive.finish();
}

}  // namespace fragtrace::launcher

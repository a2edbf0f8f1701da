#include "launcher/bundle.h"

#include <fragtrace/printable.h>

#include "launcher/refusal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>
#include <zlib.h>

namespace fragtrace::launcher {
namespace {

constexpr std::size_t kBlock_bytes = 512;

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
                          printable(path) + ": " + strerror(errno) +
                              (errno == EEXIST ? "; name another file, or remove it first" : "")};
        }
        file_ = gzdopen(fd, "wb");
        if (file_ == nullptr) {
            close(fd);
            unlink(path.c_str());
            throw Refusal{kBadUsage, "not enough memory to write " + printable(path)};
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
                throw Refusal{kBadUsage, printable(file.source) + ": cannot be read"};
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
        throw Refusal{kBadUsage, printable(path_) + " cannot be written: " + strerror(errno)};
    }

    std::string path_;
    gzFile file_ = nullptr;
};

}  // namespace

void write_bundle(const std::string& path, const std::vector<BundleFile>& files) {
    Archive archive(path);
    for (const BundleFile& file : files) {
        archive.add(file);
    }
    archive.finish();
}

}  // namespace fragtrace::launcher

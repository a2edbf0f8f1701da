// File systems that the recorder treats specially, and the space that it leaves free on each.
#pragma once

#include <stdint.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

namespace fragtrace::preload {

struct FileSystem {
    uint32_t magic;  // statfs::f_type
    char name[10];   // in place: a pointer would be relocated in every process
    bool takes_no_ring;
};

// A ring may not lie on storage where a store to a mapping can block or fail because of a remote
// machine. Nor may it lie on copy-on-write file systems: there a store allocates a new block, so it
// can fail for lack of space although all blocks were allocated.
inline constexpr FileSystem kFileSystems[] = {
    {0x6969, "NFS", true},
    {0x0bd00bd0, "Lustre", true},
    {0x47504653, "GPFS", true},
    {0xff534d42, "SMB", true},
    {0xfe534d42, "SMB", true},
    {0x00c36400, "Ceph", true},
    {0x65735546, "FUSE", true},
    {0x01021997, "9p", true},
    {0x19830326, "BeeGFS", true},
    {0xaad7aaea, "PanFS", true},
    {0x20030528, "OrangeFS", true},
    {0x5346414f, "AFS", true},  // OpenAFS
    {0x6b414653, "AFS", true},  // of the kernel
    {0x73757245, "Coda", true},
    {0x01161970, "GFS2", true},
    {0x7461636f, "OCFS2", true},
    {0x2fc12fc1, "ZFS", true},    // copy on write
    {0x9123683e, "btrfs", true},  // copy on write
    {0x794c7630, "overlayfs", false},
    {0x01021994, "tmpfs", false},
};

// Returns nullptr for all others.
inline const FileSystem* known_file_system(const struct statfs& place) {
    for (const FileSystem& one : kFileSystems) {
        if (one.magic == static_cast<uint32_t>(place.f_type)) {
            return &one;
        }
    }
    return nullptr;
}

inline bool takes_no_ring(const struct statfs& place) {
    const FileSystem* known = known_file_system(place);
    return known != nullptr && known->takes_no_ring;
}

// The space that must stay free: the larger one of a share of the file system and a number of
// bytes.
inline uint64_t kept_free_bytes(const struct statvfs& place, uint32_t percent, uint64_t bytes) {
    const uint64_t share_bytes =
        static_cast<uint64_t>(place.f_blocks) / 100 * percent * place.f_frsize;
    return share_bytes > bytes ? share_bytes : bytes;
}

}  // namespace fragtrace::preload

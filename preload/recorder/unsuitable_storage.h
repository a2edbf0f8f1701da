// File systems on which no ring may lie.
#pragma once

#include <stdint.h>
#include <sys/statfs.h>

namespace fragtrace::preload {

// Storage on which a store to a mapping can block or fail because of a remote machine. Also
// copy-on-write file systems: there, a store allocates a new block, so it can fail for lack of
// space although all blocks were allocated.
inline bool is_unsuitable(const struct statfs& place) {
    switch (static_cast<uint32_t>(place.f_type)) {
        case 0x6969:      // NFS
        case 0x0bd00bd0:  // Lustre
        case 0x47504653:  // GPFS
        case 0xff534d42:  // CIFS
        case 0xfe534d42:  // SMB2
        case 0x00c36400:  // Ceph
        case 0x65735546:  // FUSE: sshfs, cluster file systems
        case 0x01021997:  // 9p
        case 0x19830326:  // BeeGFS
        case 0xaad7aaea:  // PanFS
        case 0x20030528:  // OrangeFS
        case 0x5346414f:  // OpenAFS
        case 0x6b414653:  // AFS of the kernel
        case 0x73757245:  // Coda
        case 0x01161970:  // GFS2
        case 0x7461636f:  // OCFS2
        case 0x2fc12fc1:  // ZFS: copy on write
        case 0x9123683e:  // btrfs: also copy on write
            return true;
        default:
            return false;
    }
}

}  // namespace fragtrace::preload

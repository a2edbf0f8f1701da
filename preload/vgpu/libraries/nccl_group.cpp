#include "libraries/nccl_group.h"

#include "common/config.h"
#include "common/stub.h"
#include "libraries/nccl_buffers.h"

#include <stdio.h>
#include <stdlib.h>

namespace fragtrace::vgpu {

__thread Group t_group;

namespace {

// Joins the ranks of this rank's colour, in the order of their keys and ranks.
int agree(Forming* forming) {
    struct Agreed {
        uint64_t agreement;
        int64_t colour;
    } agreed{forming->agreement, forming->colour};

    Communicator* parent = forming->parent;
    const int my_key = post_of(parent->segment, parent->rank, forming->agreement).root;
    int ranks = 0;
    int rank = 0;
    for (int other = 0; other < parent->ranks; ++other) {
        const Post& post = post_of(parent->segment, other, forming->agreement);
        if (post.kind != int(CallKind::kSplit)) {
            return fail(parent, kInvalidUsage, "a rank called a collective instead of CommSplit");
        }
        if (post.operation != forming->colour) continue;
        ++ranks;
        if (post.root < my_key || (post.root == my_key && other < parent->rank)) ++rank;
    }
    consumed_agreement(parent, forming->agreement);
    if (forming->colour == kNoColour) return kSuccess;
    char key[kKeyBytes];
    derive_key(key, parent->key, &agreed, sizeof agreed);
    int error = kSuccess;
    forming->made = new_communicator(key, ranks, rank, &error);
    return error;
}

struct FormingAll {
    Forming* first;
    int error;
};

// Takes a split one step further. Returns false until all ranks have named their colours.
bool agreed(Forming* forming, int* error) {
    const Communicator* parent = forming->parent;
    if (!is_communicator(parent)) {
        *error = kInvalidUsage;
        return false;
    }
    if (!all_posted(forming->parent, forming->agreement)) {
        if (parent->error != kSuccess) *error = parent->error;
        if (*error == kSuccess && parent->aborted) *error = kInvalidUsage;
        return false;
    }
    *error = agree(forming);
    forming->parent = nullptr;
    return *error == kSuccess;
}

// Returns false until all ranks have joined.
bool joined(const Forming& forming, int* error) {
    if (forming.made == nullptr || everyone_joined(forming.made->segment)) return true;
    const bool stale = forming.maker.id != 0 && !runs(forming.maker);
    if (!stale && !a_member_is_gone(forming.made)) return false;
    // The last rank may have joined meanwhile.
    if (everyone_joined(forming.made->segment)) return true;
    *error = kRemoteError;
    return false;
}

// Takes each communicator one step further. True when all are complete, or one has failed.
bool formed(void* data) {
    auto* all = static_cast<FormingAll*>(data);
    bool complete = true;
    for (Forming* at = all->first; at != nullptr && all->error == kSuccess; at = at->next) {
        const bool ready = at->parent == nullptr || agreed(at, &all->error);
        if (!ready || !joined(*at, &all->error)) complete = false;
    }
    return complete || all->error != kSuccess;
}
}  // namespace

int form_all(Forming* first) {
    FormingAll all{first, kSuccess};
    {
        const CommunicatorLock lock;
        if (!wait_unlocked(formed, &all, nccl_limit_s())) {
            fprintf(stderr,
                    "fragtrace: virtual NCCL: not all ranks of a communicator came within %u s\n",
                    nccl_limit_s());
            all.error = kSystemError;
        }
    }
    while (first != nullptr) {
        Forming* forming = first;
        first = forming->next;
        Communicator* made = forming->made;
        if (all.error == kSuccess && made != nullptr && !allocate_first_buffers(made)) {
            all.error = kUnhandledCudaError;
        }
        *forming->out = all.error == kSuccess ? made : nullptr;
        if (all.error != kSuccess && made != nullptr) {
            free_buffers(made->device, made->buffers);
            const CommunicatorLock lock;
            delete_communicator(made);
        }
        free(forming);
    }
    return all.error;
}

int form(Forming forming) {
    auto* kept = static_cast<Forming*>(malloc(sizeof(Forming)));
    if (kept == nullptr) return kSystemError;
    *kept = forming;
    if (t_group.depth == 0) return form_all(kept);
    kept->next = t_group.forming;
    t_group.forming = kept;
    *forming.out = forming.made;
    return kSuccess;
}
}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

extern "C" {

FT_EXPORT int ncclGroupStart(void) {
    ++t_group.depth;
    return kSuccess;
}

FT_EXPORT int ncclGroupEnd(void) {
    if (t_group.depth == 0) return kInvalidUsage;
    if (--t_group.depth > 0) return kSuccess;
    const Group group = t_group;
    t_group = {};
    int error = group.forming != nullptr ? form_all(group.forming) : kSuccess;
    if (error == kSuccess) error = group.error;
    if (error == kSuccess) return issue(group.first);
    free_works(group.first);
    return error;
}
}  // extern "C"

// What an anonymized trace keeps of facts.
#include "analyzer/trace/anonymous_facts.h"

#include <catch2/catch.hpp>

using namespace fragtrace::analyzer;

namespace {

std::string kept(std::string_view key, const std::string& value, bool is_setting = false) {
    AnonymousNames names;
    return anonymous_fact(key, value, is_setting, &names);
}

}  // namespace

TEST_CASE("settings are kept under every name of PyTorch's variable", "[anonymize]") {
    const std::string settings = "expandable_segments:True";
    for (const char* key : {"allocator_conf",
                            "environment.PYTORCH_CUDA_ALLOC_CONF",
                            "environment.PYTORCH_HIP_ALLOC_CONF",
                            "environment.PYTORCH_ALLOC_CONF",
                            "pool.3.settings"}) {
        CHECK(kept(key, settings, true) == settings);
        CHECK(kept(key, settings, false).empty());
    }
    CHECK(kept("text.5", settings, true) == settings);
    CHECK(kept("text.5", "secret", false) == "text_1");
    CHECK(kept("environment.SECRET", settings, true).empty());
}

TEST_CASE("a state is kept without its reason", "[anonymize]") {
    CHECK(kept("stacks.native", "off: FRAGTRACE_STACKS") == "off");
    CHECK(kept("torch.pools", "incomplete: more private blocks than are kept") == "incomplete");
    CHECK(kept("torch.captures", "unknown: no known way of marking them") == "unknown");
    CHECK(kept("nvtx.memory", "off: secret") == "off");
    CHECK(kept("jax.pool", "recorded") == "recorded");
    CHECK(kept("torch.caching", "off, at run time") == "off, at run time");
    CHECK(kept("stacks.native", "offline secret").empty());
    CHECK(kept("secret", "off: FRAGTRACE_STACKS").empty());
}

TEST_CASE("counts of replaced results and the kind of a context's size are kept", "[anonymize]") {
    CHECK(kept("nccl.zeros.results", "12") == "12");
    CHECK(kept("nccl.zeros.results", "secret").empty());
    CHECK(kept("device.0.context_bytes.measured", "total less free after secret") ==
          "total less free");
    CHECK(kept("device.0.context_bytes.measured", "secret").empty());
}

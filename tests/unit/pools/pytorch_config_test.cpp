// Settings that PyTorch 2.15 accepts or refuses, with PyTorch's reasons.
#include "analyzer/pools/pytorch/pytorch_config.h"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

TEST_CASE("settings that PyTorch accepts are accepted with its values") {
    const std::vector<std::pair<const char*, const char*>> cases = {
        {"", ""},
        {"max_split_size_mb:20", "max_split_size_mb:20"},
        {" max_split_size_mb : 50 ", "max_split_size_mb:50"},
        {"max_split_size_mb:50,", "max_split_size_mb:50"},
        {"max_split_size_mb,50", "max_split_size_mb:50"},
        {"max_split_size_mb:50;x", "max_split_size_mb:50"},
        {"max_split_size_mb:+50", "max_split_size_mb:50"},
        {"max_split_size_mb:50,max_split_size_mb:60", "max_split_size_mb:60"},
        {"max_split_size_mb:-1", "max_split_size_mb:17592186044415"},
        {"large_segment_size_mb:11", "large_segment_size_mb:11"},
        {"max_split_size_mb:12,large_segment_size_mb:12",
         "large_segment_size_mb:12,max_split_size_mb:12"},
        {"garbage_collection_threshold:0.8abc", "garbage_collection_threshold:0.8"},
        {"roundup_power2_divisions:4", "roundup_power2_divisions:4"},
        {"roundup_power2_divisions:[>:4]",
         "roundup_power2_divisions:[1:0,2:4,4:4,8:4,16:4,32:4,64:4,128:4,256:4,512:4,1024:4,"
         "2048:4,4096:4,8192:4,16384:4,32768:4]"},
        {"roundup_power2_divisions:[2:1,8:4]",
         "roundup_power2_divisions:[1:1,2:1,4:0,8:4,16:0,32:0,64:0,128:0,256:0,512:0,1024:0,"
         "2048:0,4096:0,8192:0,16384:0,32768:0]"},
        {"roundup_power2_divisions:[]", ""},
        {"roundup_power2_divisions:[256:0]", ""},
        {"expandable_segments:True", "expandable_segments:True"},
        {"expandable_segments:False", ""},
        {"per_process_memory_fraction:0.5", "per_process_memory_fraction:0.5"},
        {"throw_on_cudamalloc_oom:True", "throw_on_cudamalloc_oom:True"},
        {"expandable_segments_reserve:0.5", "expandable_segments_reserve:0.5"},
        {"expandable_segments_reserve:8G", "expandable_segments_reserve:8G"},
        {"expandable_segments_reserve:zz", ""},
        {"expandable_segments_reserve_by_class:[a:0.5],max_split_size_mb:50",
         "max_split_size_mb:50"},
        {"backend:native", ""},
        {"pinned_num_register_threads:8,release_lock_on_cudamalloc:True,"
         "pinned_use_background_threads:True",
         ""},
    };
    for (const auto& [text, canonical] : cases) {
        INFO(text);
        const auto config = parse_pytorch_config(text);
        REQUIRE(config.ok());
        CHECK(to_string(*config) == canonical);
        const auto again = parse_pytorch_config(to_string(*config));
        REQUIRE(again.ok());
        CHECK(*again == *config);
    }
}

TEST_CASE("settings that PyTorch refuses are refused with its reason") {
    const std::string divisions = "For roundups, the divisions has to be power of 2";
    const std::vector<std::pair<const char*, std::string>> cases = {
        {"foo:1", "'foo': Unrecognized key 'foo' in CUDA allocator config."},
        {",max_split_size_mb:50", "Unrecognized key ',' in CUDA allocator config."},
        {"max_split_size_mb:10",
         "'max_split_size_mb:10': max_split_size_mb too small, must be >= 20"},
        {"max_split_size_mb:30,large_segment_size_mb:40", "must be >= 40"},
        {"max_split_size_mb:abc", "it is not a whole number"},
        {"max_split_size_mb:[50]", "it is not a whole number"},
        {"max_split_size_mb:9999999999999999999999", "it is not a whole number"},
        {"max_split_size_mb", "the value is missing"},
        {"max_split_size_mb:", "the value is missing"},
        {"max_non_split_rounding_mb:10", "max_non_split_rounding_mb too small, must be >= 20"},
        {"large_segment_size_mb:10", "large_segment_size_mb must be > 10 MB"},
        {"garbage_collection_threshold:0", "set it in (0.0, 1.0)"},
        {"garbage_collection_threshold:1.0",
         "garbage_collect_threshold is invalid, set it in (0.0, 1.0)"},
        {"garbage_collection_threshold:x", "it is not a number"},
        {"roundup_power2_divisions:3", divisions},
        {"roundup_power2_divisions:0", divisions},
        {"roundup_power2_divisions:-1", divisions},
        {"roundup_power2_divisions:[3:1]", "For roundups, the intervals have to be power of 2"},
        {"roundup_power2_divisions:[0:4]", "For roundups, the intervals have to be power of 2"},
        {"roundup_power2_divisions:[256:3]",
         "'roundup_power2_divisions:256:3': " + divisions + " or 0 to disable roundup"},
        {"roundup_power2_divisions:[256:4,>:3]", divisions + " or 0 to disable roundup"},
        {"roundup_power2_divisions:[256:1", "the list is not closed by ']'"},
        {"expandable_segments:true", "Expected 'True' or 'False' but got 'true'"},
        {"throw_on_cudamalloc_oom:1", "Expected 'True' or 'False' but got '1'"},
        {"per_process_memory_fraction:1.5",
         "per_process_memory_fraction is invalid, set it in [0.0, 1.0]"},
        {"per_process_memory_fraction:-0.1", "set it in [0.0, 1.0]"},
        {"pinned_num_register_threads:3", "Number of register threads has to be power of 2, got 3"},
        {"pinned_num_register_threads:256",
         "Number of register threads should be less than or equal to 128, got 256"},
        {"pinned_reserve_segment_size_mb:0",
         "Pinned reserve segment size has to be greater than 0"},
        {"backend:foo", "Unknown allocator backend, options are native and cudaMallocAsync"},
        {"backend:cudaMallocAsync", "not simulated"},
        {"roundup_bypass_threshold_mb:1", "Unrecognized key"},
    };
    for (const auto& [text, reason] : cases) {
        INFO(text);
        const auto config = parse_pytorch_config(text);
        REQUIRE_FALSE(config.ok());
        CHECK(config.error().code == ErrorCode::kUsage);
        CHECK_THAT(config.error().message, Catch::Contains(reason));
    }
}

TEST_CASE("before 2.10 '>' overwrites the last named interval") {
    const char* text = "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]";
    const auto now = parse_pytorch_config(text);
    const auto before = parse_pytorch_config(text, PytorchRules::for_version(2, 9));
    REQUIRE((now.ok() && before.ok()));
    CHECK(now->roundup_divisions[8] == 1);
    CHECK(now->roundup_divisions[9] == 2);
    CHECK(now->roundup_divisions[10] == 4);
    CHECK(now->roundup_divisions[11] == 8);
    CHECK(before->roundup_divisions[9] == 2);
    CHECK(before->roundup_divisions[10] == 8);
}

}  // namespace
}  // namespace fragtrace::analyzer

#include "analyzer/analysis/analyze.h"

#include <fragtrace/pytorch_variables.h>

#include "analyzer/analysis/add_remedies.h"
#include "analyzer/analysis/add_whatif.h"
#include "analyzer/analysis/assumptions_and_warnings.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/metrics/measure.h"
#include "analyzer/analysis/read_run.h"
#include "analyzer/analysis/recorded_replay.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/pools/pytorch/known_releases.h"
#include "analyzer/pools/pytorch/pytorch_config.h"
#include "analyzer/pools/pytorch/pytorch_sizes.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/block_sizes.h"
#include "analyzer/replay/script_plan.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <future>

namespace fragtrace::analyzer {
namespace {

// ---- the recorded run ---------------------------------------------------------------------------

void add_recorded(const Timeline& timeline, const DeviceMetrics& metrics, DeviceAnalysis* device) {
    device->recorded = metrics.summary;
    device->recorded_troubles = metrics.troubles;
    device->violations = metrics.violations;
    device->after_gap = metrics.after_gap;
    device->state_only = metrics.state_only;
    device->context = context_memory(timeline, device->device);
    device->last_sample = metrics.last_sample;
    device->other_processes = other_processes(timeline, device->device);
    device->total_bytes = metrics.total_bytes;
    device->others_bytes = metrics.context_and_others_bytes;
    device->peak_unmapped_bytes = metrics.peak_unmapped;
    device->beside_pool = metrics.beside_pool;
    device->capacity_known = metrics.total_bytes != 0;
    device->capacity_bytes = metrics.capacity_bytes;
    if (!device->capacity_known) {
        device->capacity_bytes = kUnlimitedBytes;
        device->total_bytes = kUnlimitedBytes;
    }
}

void name_device(const Timeline& timeline, DeviceAnalysis* device) {
    device->name = device_name(timeline, device->device);
    device->virtual_gpu = timeline.fact("virtual") == "1";
}

std::string settings_of_environment(const Timeline& timeline, const PytorchRules& rules) {
    for (const PytorchVariable& variable : kPytorchVariables) {
        const auto found = timeline.facts.find(std::string("environment.") + variable.name);
        if (found != timeline.facts.end() && variable.since_minor <= rules.minor) {
            return found->second;
        }
    }
    return "";
}

// Takes the settings in force when the allocator started. Settings that cannot be replayed cause a
// warning, not an error.
void take_settings(const Timeline& timeline,
                   DeviceAnalysis* device,
                   std::vector<std::string>* warnings) {
    std::string config = timeline.fact("allocator_conf");
    if (device->script.first_settings) {
        config = *device->script.first_settings;
    } else if (!device->script.settings.empty()) {
        // The fact is rewritten at every change, so the first settings are those of the
        // environment.
        config = settings_of_environment(timeline, device->script.rules);
    }
    const auto parsed = parse_pytorch_config(config, device->script.rules);
    if (parsed) {
        device->config = config;
        return;
    }
    warnings->push_back(
        fmt::format("the recorded settings cannot be replayed; the defaults are used instead: {}",
                    parsed.error().message));
}

// Takes the tightest limit that was ever in force. PyTorch applies its memory fraction to the
// card's total memory.
void take_limit(DeviceAnalysis* device) {
    const auto parsed = parse_pytorch_config(device->config, device->script.rules);
    const double fraction = std::min(least_memory_fraction(device->script),
                                     parsed ? parsed->per_process_memory_fraction : 1);
    if (device->capacity_known && fraction > 0 && fraction < 1) {
        device->limit_bytes =
            pytorch::limit_bytes(device->script.rules, fraction, device->total_bytes);
    }
}

// The size of the card, as the driver first stated it; kUnlimitedBytes if it never did.
std::uint64_t stated_total_bytes(const Timeline& timeline, DeviceId device) {
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        if (timeline.events.kind(i) == EventKind::kMemoryInfo &&
            timeline.events.device(i) == device && timeline.events[i].extra != 0) {
            return timeline.events[i].extra;
        }
    }
    return kUnlimitedBytes;
}

// A device, replayed with the recorded settings.
struct ReplayedDevice {
    DeviceAnalysis device;  // without the facts of add_recorded()
    ReplayResult result;
    OtherSizes sizes;
    Status status = Ok{};
    std::vector<std::string> warnings;
};

// The recorded replay repeats the driver's recorded answers. It needs no metrics, so it can run
// while they are measured.
ReplayedDevice replay_recorded(const AnalyzeOptions& options,
                               const Timeline& timeline,
                               DeviceId id) {
    ReplayedDevice replayed;
    DeviceAnalysis& device = replayed.device;
    device.device = id;
    device.script = make_script(timeline, id);
    const bool blocks = device.script.source == ScriptSource::kBlocks;
    device.pool = blocks && shows_reserved(timeline.facts) ? "pytorch" : "none";
    device.total_bytes = device.capacity_bytes = stated_total_bytes(timeline, id);
    if (!options.torch_version.empty()) {
        device.script.rules = PytorchRules::for_release(options.torch_version);
    }
    if (device.pool == "pytorch") {
        take_settings(timeline, &device, &replayed.warnings);
        const std::string doubt = doubt_about_release(
            options.torch_version.empty() ? timeline.fact("torch_version") : options.torch_version);
        if (!doubt.empty()) {
            replayed.warnings.push_back(doubt);
        }
    }
    replayed.status = add_replay(timeline, &device, &replayed.result, &replayed.sizes);
    return replayed;
}

// Corrects the block sizes of a snapshot. The reader has usually derived all of them, so the
// metrics are measured without waiting for the replay. Returns true if they must be measured again.
bool take_sizes(const std::vector<ReplayedDevice>& replayed, Timeline* timeline) {
    bool changed = false;
    for (const ReplayedDevice& device : replayed) {
        changed = correct_sizes(device.sizes, timeline) || changed;
    }
    return changed;
}

// Adds the facts about a device that need no replay.
void add_facts(const AnalyzeOptions& options,
               const Timeline& timeline,
               const DeviceMetrics& metrics,
               DeviceAnalysis* device) {
    name_device(timeline, device);
    add_recorded(timeline, metrics, device);
    if (device->script.source == ScriptSource::kBlocks) {
        take_limit(device);
    }
    if (options.capacity_bytes) {
        device->capacity_bytes = *options.capacity_bytes;
        device->total_bytes = *options.capacity_bytes + device->others_bytes;
        device->capacity_known = true;
    }
}

// ---- who holds the memory -----------------------------------------------------------------------

// The memory of the card outside the pool at an event. `failed`: the diagnosis there, which knows
// the free memory of that moment; nullptr = none.
CardMemory card_at(const DeviceAnalysis& device, EventIndex event, const Diagnosis* failed) {
    CardMemory card{.others_bytes = device.others_bytes,
                    .context_bytes = device.context.bytes,
                    .processes_bytes = 0};
    if (failed != nullptr && device.capacity_known && failed->verdict.device_free_known()) {
        const std::uint64_t known =
            failed->verdict.device_free_bytes + failed->verdict.reserved_bytes;
        card.others_bytes = device.total_bytes - std::min(device.total_bytes, known);
    }
    if (const OtherProcesses* others = report_at(device.other_processes, event)) {
        card.processes_bytes = others->other_bytes;
    }
    return card;
}

// Runs in parallel to the what-if replays. `timeline`, `peaks` and the device's maps must stay
// valid until it is done.
std::future<DeviceHolders> look_for_holders(const Timeline& timeline,
                                            const ReplayResult& result,
                                            const DeviceAnalysis& device,
                                            const PeakHistory& peaks,
                                            std::shared_ptr<const CategoryRules> rules) {
    std::vector<HeapInstant> instants;
    const Diagnosis* reported = reported_oom(device);
    for (const Diagnosis& diagnosis : device.diagnoses) {
        const bool retry = diagnosis.trouble.outcome == Outcome::kRetryOk;
        const EventIndex event = diagnosis.trouble.event;
        // Reports describe the first instant.
        instants.insert(
            &diagnosis == reported ? instants.begin() : instants.end(),
            {.event = event,
             .heap = &diagnosis.heap,
             .card = card_at(device, event, retry ? nullptr : &diagnosis),
             .kind = retry ? HeapInstant::Kind::kRetry : HeapInstant::Kind::kOutOfMemory});
    }
    if (device.peak) {
        const EventIndex event = device.peak->trouble.event;
        instants.push_back({.event = event,
                            .heap = &device.peak->heap,
                            .card = card_at(device, event, nullptr),
                            .kind = HeapInstant::Kind::kPeakReserved});
    }
    if (device.at_peak_allocated.event != kNoEvent) {
        const EventIndex event = device.at_peak_allocated.event;
        instants.push_back({.event = event,
                            .heap = &device.at_peak_allocated.heap,
                            .card = card_at(device, event, nullptr),
                            .kind = HeapInstant::Kind::kMostAllocated});
    }
    std::vector<EventIndex> failed;
    for (const Trouble& trouble : result.troubles) {
        if (trouble.outcome != Outcome::kRetryOk) {
            failed.push_back(trouble.event);
        }
    }
    const bool blocks = device.script.source == ScriptSource::kBlocks;
    return std::async(std::launch::async,
                      [&timeline, &peaks, id = device.device, blocks, instants, failed, rules] {
                          return find_holders(
                              timeline, id, blocks, instants, failed, peaks, rules.get());
                      });
}

// Forecasts when growth fills the card. The run needs its peak since the first iteration plus
// pending memory and holes, but at most the peak of reserved memory. Cached memory counts as room,
// since the pool returns it to the driver first.
std::optional<GrowthForecast> look_ahead(const DeviceAnalysis& device) {
    if (reported_oom(device) != nullptr) {
        return std::nullopt;
    }
    const WasteSplit& waste = device.recorded.waste_at_peak;
    const IterationPeaks& peaks = device.held.peaks;
    const std::uint64_t in_use =
        peaks.known ? peaks.steady_allocated : device.recorded.peak_allocated;
    std::uint64_t retried_bytes = 0;
    for (const Diagnosis& diagnosis : device.diagnoses) {
        retried_bytes = std::max(retried_bytes, diagnosis.verdict.requested_bytes);
    }
    return forecast_growth(
        device.held.growth,
        {.capacity_known = device.capacity_known,
         .capacity_bytes = device.limit_bytes == 0
                               ? device.capacity_bytes
                               : std::min(device.capacity_bytes, device.limit_bytes),
         .peak_reserved_bytes = device.recorded.peak_reserved,
         .needed_bytes =
             std::min(device.recorded.peak_reserved, in_use + waste.pending + waste.inactive_split),
         .retried_bytes = retried_bytes});
}

// Lists the holes, which a state at one moment still shows.
void add_holes(DeviceAnalysis* device) {
    const auto config = parse_pytorch_config(device->config, device->script.rules);
    if (device->state_only && device->peak && config) {
        device->holes = holes_of(device->peak->heap, *config, device->script.rules);
    }
}

// ---- pools of the program ----------------------------------------------------------------------

std::vector<ProgramPool> program_pools_of(const Analysis& analysis) {
    std::vector<std::pair<EventIndex, DeviceId>> out_of_memory;
    for (const DeviceAnalysis& device : analysis.devices) {
        for (const Diagnosis& diagnosis : device.diagnoses) {
            if (diagnosis.trouble.outcome != Outcome::kRetryOk) {
                out_of_memory.emplace_back(diagnosis.trouble.event, device.device);
            }
        }
    }
    std::sort(out_of_memory.begin(), out_of_memory.end());
    return find_program_pools(analysis.timeline, out_of_memory, analysis.symbols.get());
}

// ---- what was tried ----------------------------------------------------------------------------

void add_trials(const std::string& path, Analysis* analysis) {
    std::string problem;
    for (Trial& trial : read_trials(path, analysis->timeline.start_unix_ns, &problem)) {
        for (DeviceAnalysis& device : analysis->devices) {
            if (device.device == trial.device) {
                device.trials.push_back(std::move(trial));
                break;
            }
        }
    }
    if (!problem.empty()) {
        analysis->warnings.push_back(std::move(problem));
    }
}

// ---- assumptions -------------------------------------------------------------------------------

// Assumptions apply only from here on. Fidelity and diagnoses have used the recorded values.
Status take_assumptions(const AnalyzeOptions& options, DeviceAnalysis* device) {
    device->assumptions = options.assumptions;
    assume_pending(options.assumptions.pending, &device->script);
    if (options.assumptions.context_bytes) {
        device->others_bytes = *options.assumptions.context_bytes;
        if (options.capacity_bytes) {
            device->total_bytes = device->capacity_bytes + device->others_bytes;
        } else if (device->capacity_known) {
            if (device->others_bytes >= device->total_bytes) {
                return Error{ErrorCode::kUsage,
                             fmt::format("--context: {} leave nothing of a card of {}",
                                         format_bytes(device->others_bytes),
                                         format_bytes(device->total_bytes))};
            }
            device->capacity_bytes = device->total_bytes - device->others_bytes;
        }
    }
    return Ok{};
}

}  // namespace

Result<std::unique_ptr<Analysis>> analyze(const std::string& path, const AnalyzeOptions& options) {
    auto read = read_run(path,
                         options.most_events,
                         {.torch_version = options.torch_version,
                          .absorb_ring = options.absorb_ring,
                          .replay_sizes = false});
    if (!read) {
        return read.error();
    }
    auto analysis = std::make_unique<Analysis>();
    analysis->timeline = std::move(read->timeline);
    analysis->symbols = std::make_unique<Symbolizer>(analysis->timeline);
    analysis->phases.emplace(analysis->timeline);
    analysis->categories = options.categories;
    const std::vector<DeviceId> devices = replayable_devices(analysis->timeline);
    // The recorded settings are replayed in parallel to the measuring walk.
    std::future<std::vector<ReplayedDevice>> replays =
        std::async(std::launch::async, [&options, &read = analysis->timeline, &devices] {
            std::vector<ReplayedDevice> done;
            done.reserve(devices.size());
            for (const DeviceId id : devices) {
                done.push_back(replay_recorded(options, read, id));
            }
            return done;
        });
    RecordedRun recorded = measure(analysis->timeline, devices);
    std::vector<ReplayedDevice> replayed = replays.get();
    if (take_sizes(replayed, &analysis->timeline)) {
        recorded = measure(analysis->timeline, devices);
    }
    analysis->run = std::move(recorded.run);
    if (read->whole) {
        take_whole_run(*read->whole, devices, &recorded.devices);
    }
    for (std::size_t i = 0; i < devices.size(); ++i) {
        DeviceAnalysis& device = analysis->devices.emplace_back(std::move(replayed[i].device));
        add_facts(options, analysis->timeline, recorded.devices[i], &device);
        for (std::string& warning : replayed[i].warnings) {
            analysis->warnings.push_back(std::move(warning));
        }
    }
    if (options.when_recorded) {
        options.when_recorded(*analysis);
    }
    CoverBudget budget;  // shared by all devices
    for (std::size_t i = 0; i < analysis->devices.size(); ++i) {
        DeviceAnalysis& device = analysis->devices[i];
        const ReplayResult& result = replayed[i].result;
        if (!replayed[i].status) {
            return replayed[i].status.error();
        }
        if (const Status done =
                add_diagnoses(analysis->timeline, &device, result, options, &budget);
            !done) {
            return done.error();
        }
        device.no_whatif = why_no_whatif(device);
        add_holes(&device);
        std::future<DeviceHolders> held;
        if (options.holders) {
            held = look_for_holders(
                analysis->timeline, result, device, recorded.peaks[i], options.categories);
        }
        KnownReplays known;
        if (const Status done = take_assumptions(options, &device); !done) {
            return done.error();
        }
        if (const Status done = add_whatif(options, &known, &device); !done) {
            return done.error();
        }
        if (held.valid()) {
            device.held = held.get();
            device.growth_forecast = look_ahead(device);
        }
        if (const Status done = add_remedies(options, &known, analysis.get(), &device); !done) {
            return done.error();
        }
    }
    analysis->program_pools = program_pools_of(*analysis);
    add_trials(path, analysis.get());
    add_assumptions_and_warnings(analysis.get());
    return analysis;
}

}  // namespace fragtrace::analyzer

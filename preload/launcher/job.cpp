#include "launcher/job.h"

#include <fragtrace/printable.h>
#include <fragtrace/suggestion.h>

#include "launcher/command_line.h"
#include "launcher/libraries.h"
#include "launcher/python_program.h"
#include "launcher/refusal.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::launcher {
namespace {

constexpr const char* kJobText =
    R"(Summarizes each trace of a job on the workers of Dask, merges the summaries, and prints the view of
the job. Run it again to continue: a summary that matches its trace is kept. Needs `pip install
'fragtrace[job]'`; for --slurm, --pbs and --lsf also dask-jobqueue.

Examples
  fragtrace job analyze traces                              on this machine's processors
  fragtrace job analyze traces --scheduler tcp://node1:8786 on a running Dask cluster
  fragtrace job analyze traces --slurm --workers 16 --submit-option=--partition=short
  fragtrace job analyze traces --pbs --submit-option='-q short'
  fragtrace job analyze s3://bucket/traces -o job           on object storage (fsspec)
)";

// The batch systems whose jobs can be the workers. scripts/job/analyze.py knows how to submit to
// each.
struct BatchSystem {
    const char* option;
    const char* name;
};

constexpr std::array<BatchSystem, 3> kBatchSystems = {
    {{"slurm", "Slurm"}, {"pbs", "PBS"}, {"lsf", "LSF"}}};

constexpr int kMostWorkers = 10000;
constexpr int kMostSeconds = 7 * 24 * 3600;

struct Options {
    std::string folder;
    std::string output;
    std::string scheduler;
    std::string batch_system;  // the option of one of kBatchSystems; empty = none
    std::vector<std::string> submit_options;
    std::string python;
    int local = 0;  // 0 = one worker for each processor
    int workers = 4;
    int wait = 0;  // 0 = the default of the place
    bool no_whatif = false;
};

// The options that say where the workers are: at most one of them.
void add_places(CLI::App* app, Options* options) {
    auto* on_local = app->add_option("--local",
                                     options->local,
                                     "start N workers on this machine (default: one for each of "
                                     "its processors)")
                         ->type_name("N")
                         ->check(CLI::Range(1, kMostWorkers));
    auto* on_scheduler = app->add_option("--scheduler",
                                         options->scheduler,
                                         "use the workers of this Dask scheduler, such as "
                                         "tcp://node1:8786; they must see FOLDER and DIR")
                             ->type_name("ADDRESS")
                             ->excludes(on_local);
    std::vector<CLI::Option*> places = {on_local, on_scheduler};
    for (const BatchSystem& system : kBatchSystems) {
        auto* on_system = app->add_flag_callback(
            std::string("--") + system.option,
            [options, &system] { options->batch_system = system.option; },
            std::string("submit jobs to ") + system.name + " that become the workers");
        for (CLI::Option* place : places) {
            on_system->excludes(place);
        }
        places.push_back(on_system);
    }
}

// The options of workers that are jobs of a batch system.
void add_batch_options(CLI::App* app, Options* options) {
    const auto* on_workers = app->add_option("--workers", options->workers, "number of these jobs")
                                 ->type_name("N")
                                 ->check(CLI::Range(1, kMostWorkers))
                                 ->capture_default_str();
    const auto* on_submit_option =
        app->add_option("--submit-option,--sbatch",
                        options->submit_options,
                        "an option of sbatch, qsub or bsub for these jobs, such as "
                        "--submit-option=--partition=short; can be repeated")
            ->type_name("OPTION")
            ->allow_extra_args(false);
    app->parse_complete_callback([on_workers, on_submit_option, options] {
        for (const CLI::Option* option : {on_workers, on_submit_option}) {
            if (option->count() > 0 && options->batch_system.empty()) {
                throw CLI::RequiresError(option->get_name(), "--slurm, --pbs or --lsf");
            }
        }
    });
}

void add_options(CLI::App* app, Options* options) {
    app->add_option("FOLDER", options->folder, "a folder of traces and snapshots, or its URL")
        ->required();
    app->add_option("-o,--output",
                    options->output,
                    "for the summaries and for job.json (default: FOLDER/job)")
        ->type_name("DIR");
    add_places(app, options);
    add_batch_options(app, options);
    app->add_option("--wait",
                    options->wait,
                    "give up after this time without a worker (default: 60, with --slurm, --pbs or "
                    "--lsf 3600)")
        ->type_name("SECONDS")
        ->check(CLI::Range(1, kMostSeconds));
    app->add_flag(
        "--no-whatif", options->no_whatif, "skip the what-if replays, which take most of the time");
    app->add_option("--python",
                    options->python,
                    "an interpreter with Dask (default: the one of the environment that fragtrace "
                    "is installed in, otherwise python3)")
        ->type_name("PATH");
}

}  // namespace

int job(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    const bool help = what == "-h" || what == "--help";
    if (!help && what != "analyze") {
        const std::string meant = did_you_mean(what, {"analyze"});
        refuse_usage((what.empty() ? "what to do with the job is missing"
                                   : "job: unknown command " + printable(what)) +
                     (meant.empty() ? ": fragtrace job analyze FOLDER" : meant));
    }
    CLI::App app(kJobText, "fragtrace job analyze");
    Options options;
    add_options(&app, &options);
    if (!read_options(&app, argc - (help ? 0 : 1), argv + (help ? 0 : 1))) {
        print_help(app);
        return 0;
    }
    const Installation installation = find_installation();
    std::vector<std::string> settings = {"folder=" + options.folder,
                                         "output=" + options.output,
                                         "analyzer=" + find_analyzer(installation),
                                         "scheduler=" + options.scheduler,
                                         "local=" + std::to_string(options.local),
                                         "batch=" + options.batch_system,
                                         "workers=" + std::to_string(options.workers),
                                         "wait=" + std::to_string(options.wait),
                                         "whatif=" + std::to_string(options.no_whatif ? 0 : 1)};
    for (const std::string& option : options.submit_options) {
        settings.push_back("submit_option=" + option);
    }
    become_python(installation,
                  options.python.empty() ? own_interpreter(installation) : options.python,
                  "job/analyze.py",
                  settings);
}

}  // namespace fragtrace::launcher

#include "launcher/job.h"

#include "launcher/command_line.h"
#include "launcher/libraries.h"
#include "launcher/python_program.h"
#include "launcher/refusal.h"

#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::launcher {
namespace {

constexpr const char* kText =
    R"(Summarizes each trace of a job on the workers of Dask, merges the summaries, and prints the view of
the job. Run it again to continue: a summary that matches its trace is kept. Needs `pip install
'fragtrace[job]'`; for --slurm also dask-jobqueue.

Examples
  fragtrace job analyze traces                              on this machine's processors
  fragtrace job analyze traces --scheduler tcp://node1:8786 on a running Dask cluster
  fragtrace job analyze traces --slurm --workers 16 --sbatch=--partition=short
  fragtrace job analyze s3://bucket/traces -o job           on object storage (fsspec)
)";

constexpr int kMostWorkers = 10000;
constexpr int kMostSeconds = 7 * 24 * 3600;

}  // namespace

int job(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    const bool help = what == "-h" || what == "--help";
    if (!help && what != "analyze") {
        refuse_usage((what.empty() ? "what to do with the job is missing"
                                   : "job: unknown command " + one_line(what)) +
                     ": fragtrace job analyze FOLDER");
    }
    CLI::App app(kText, "fragtrace job analyze");
    std::string folder;
    std::string output;
    std::string scheduler;
    std::string python;
    int local = 0;
    int workers = 4;
    int wait = 0;
    bool slurm = false;
    bool no_whatif = false;
    std::vector<std::string> sbatch;
    app.add_option("FOLDER", folder, "a folder of traces and snapshots, or its URL")->required();
    app.add_option(
           "-o,--output", output, "for the summaries and for job.json (default: FOLDER/job)")
        ->type_name("DIR");
    auto* on_local = app.add_option("--local",
                                    local,
                                    "start N workers on this machine (default: one for each of "
                                    "its processors)")
                         ->type_name("N")
                         ->check(CLI::Range(1, kMostWorkers));
    auto* on_scheduler = app.add_option("--scheduler",
                                        scheduler,
                                        "use the workers of this Dask scheduler, such as "
                                        "tcp://node1:8786; they must see FOLDER and DIR")
                             ->type_name("ADDRESS")
                             ->excludes(on_local);
    auto* on_slurm = app.add_flag("--slurm", slurm, "submit jobs to Slurm that become the workers")
                         ->excludes(on_local)
                         ->excludes(on_scheduler);
    app.add_option("--workers", workers, "number of these jobs")
        ->type_name("N")
        ->check(CLI::Range(1, kMostWorkers))
        ->capture_default_str()
        ->needs(on_slurm);
    app.add_option("--sbatch",
                   sbatch,
                   "an option of sbatch for these jobs, such as --sbatch=--partition=short; can be "
                   "repeated")
        ->type_name("OPTION")
        ->allow_extra_args(false)
        ->needs(on_slurm);
    app.add_option("--wait",
                   wait,
                   "give up after this time without a worker (default: 60, with --slurm 3600)")
        ->type_name("SECONDS")
        ->check(CLI::Range(1, kMostSeconds));
    app.add_flag("--no-whatif", no_whatif, "skip the what-if replays, which take most of the time");
    app.add_option("--python",
                   python,
                   "an interpreter with Dask (default: the one of the environment that fragtrace "
                   "is installed in, otherwise python3)")
        ->type_name("PATH");
    if (!read_options(&app, argc - (help ? 0 : 1), argv + (help ? 0 : 1))) {
        print_help(app);
        return 0;
    }
    const Installation installation = find_installation();
    std::vector<std::string> settings = {"folder=" + folder,
                                         "output=" + output,
                                         "analyzer=" + find_analyzer(installation),
                                         "scheduler=" + scheduler,
                                         "local=" + std::to_string(local),
                                         "slurm=" + std::to_string(slurm ? workers : 0),
                                         "wait=" + std::to_string(wait),
                                         "whatif=" + std::to_string(no_whatif ? 0 : 1)};
    for (const std::string& option : sbatch) {
        settings.push_back("sbatch=" + option);
    }
    become_python(installation,
                  python.empty() ? own_interpreter(installation) : python,
                  "job/analyze.py",
                  settings);
}

}  // namespace fragtrace::launcher

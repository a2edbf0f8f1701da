#include "launcher/help.h"

#include "launcher/option_texts.h"
#include "vgpu/common/config.h"

#include <string_view>

namespace fragtrace::launcher {
namespace {

constexpr const char* kBegin =
    R"(Examples:
  fragtrace run -- python train.py                          record on this machine's GPU
  fragtrace run --virtual-gpu 24GiB -- python train.py      record without a GPU
  fragtrace run --virtual-gpu A100-80GB,count=2 -- torchrun --nproc-per-node 2 train.py
  fragtrace run -o traces --quiet -- ./simulation input.txt
  fragtrace run --flight-recorder -- python serve.py        for weeks: keep the last events
  fragtrace run --start off --signal USR2 -- python train.py
                                                            start recording at the first USR2
  fragtrace top                                             watch a recorded process
  fragtrace try train.myhost.4711.ftrace                    run again with the recommended change
  fragtrace job analyze traces --slurm                      analyse a job of many processes
  fragtrace doctor                                          what will be recorded on this machine
  fragtrace clean                                           remove leftover files; traces stay
  fragtrace demo                                            record and analyse an example training

Usage: fragtrace run [OPTIONS] [--] COMMAND [ARGUMENT...]
       fragtrace try TRACE [--remedy N | --list] [--virtual-gpu CARD] [-o DIR] [-- COMMAND]
       fragtrace top [PID] [--once] [--json] [--interval SECONDS] [--serve [ADDRESS]:PORT]
       fragtrace job analyze FOLDER [-o DIR] [--local N | --scheduler ADDRESS
                 | --slurm|--pbs|--lsf [--workers N] [--submit-option OPTION]...]
                 [--wait SECONDS] [--no-whatif] [--python PATH]
       fragtrace doctor [--json] [--bundle FILE.tar.gz [--trace TRACE]] [[--] COMMAND]
       fragtrace clean [--dry-run] [--age AGE] [FOLDER...]
       fragtrace demo [--python PATH] [--output FILE]
       fragtrace --help | --version

Runs COMMAND with libfragtrace.so preloaded. Each process that uses CUDA writes a trace,
PROGRAM.HOST.PID.ftrace, or PROGRAM.HOST.rankN.PID.ftrace for rank N of a job. When COMMAND ends,
fragtrace prints to standard error the verdict of its own trace and one line per trace of this run.
If a process failed, the verdict is that of the first one that failed.

)";

constexpr const char* kVirtualGpu =
    "run on the virtual GPU. CARD is a size (24GiB) or a model (A100-80GB; the error for an "
    "unknown "
    "name lists all models), count is the number of such cards, context is the memory that a CUDA "
    "context takes, nccl the memory that a communicator of NCCL takes, or 'model' for a model of "
    "its buffers. All processes of this run share the cards, and so do those of other runs with "
    "the same shared=NAME; with shared=off each process has its own. Memory is accounted for as on "
    "a real card; kernels compute nothing";

constexpr const char* kEnd =
    R"(
Sizes: a number of bytes, or a number with a unit. KiB, MiB, GiB and TiB (also K, M, G and T) are
powers of 1024; KB, MB, GB and TB are powers of 1000. An empty variable has no effect.
Switches are on or off; 1, yes, true and 0, no, false are also accepted.

Signals: COMMAND gets every signal that fragtrace gets. When COMMAND stops, fragtrace stops too.

Exit code: COMMAND's own; 128+n when signal n ended it; 2 for bad usage, before COMMAND starts; 126
and 127 when COMMAND cannot be run or found.
)";

constexpr std::size_t kWidth = 100;

// Returns "-o, --output DIR" for the row with "-o,--output" and "DIR".
std::string option_name(const OptionText& row) {
    std::string name = row.option;
    if (const std::size_t comma = name.find(','); comma != std::string::npos) {
        name.insert(comma + 1, " ");
    }
    return name + (row.value[0] == '[' ? "" : " ") + row.value;
}

}  // namespace

void add_row(std::string* text, std::string_view name, std::string_view words, std::size_t column) {
    std::string line = "  " + std::string(name);
    if (line.size() + 1 > column) {
        *text += line + '\n';
        line.clear();
    }
    line.resize(column, ' ');
    bool first = true;
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find(' '));
        words.remove_prefix(word.size() == words.size() ? word.size() : word.size() + 1);
        if (!first && line.size() + 1 + word.size() > kWidth) {
            *text += line + '\n';
            line.assign(column, ' ');
            first = true;
        }
        line += (first ? "" : " ") + std::string(word);
        first = false;
    }
    *text += line + '\n';
}

std::string help_text() {
    constexpr std::size_t kOptionColumn = 21;
    constexpr std::size_t kVariableColumn = 29;
    std::string text = kBegin;
    text += "Options:\n";
    add_row(&text,
            "--virtual-gpu CARD[,count=N][,context=SIZE][,nccl=SIZE|model][,shared=NAME]",
            kVirtualGpu,
            kOptionColumn);
    add_row(&text, "--no-record", "do not preload libfragtrace.so (to compare)", kOptionColumn);
    for (const OptionText& row : kOptionTexts) {
        if (row.option[0] != '\0') {
            add_row(&text, option_name(row), row.description, kOptionColumn);
        }
    }
    add_row(&text,
            "--quiet",
            "after the run, print only the command that analyses the trace",
            kOptionColumn);
    add_row(&text, "-h, --help", "this text", kOptionColumn);
    add_row(&text, "--version", "the version", kOptionColumn);

    text += "\nEnvironment:\n";
    for (const OptionText& row : kOptionTexts) {
        const std::string_view option = row.option;
        const std::string same = "the same as " + std::string(option.substr(option.rfind(',') + 1));
        add_row(&text, row.variable, option.empty() ? row.description : same, kVariableColumn);
    }
    add_row(&text,
            "FRAGTRACE_VIRTUAL_GPU",
            "set for COMMAND by --virtual-gpu; without the launcher, the cards of the virtual GPU",
            kVariableColumn);
    for (const vgpu::Variable& variable : vgpu::kVariables) {
        add_row(&text, variable.name, variable.description, kVariableColumn);
    }
    add_row(&text,
            "FRAGTRACE_JOB",
            "set for COMMAND: a name for this run, kept in the traces of all its processes",
            kVariableColumn);
    return text + kEnd;
}

}  // namespace fragtrace::launcher

#include "process.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace fragtrace::tests {
namespace {

namespace fs = std::filesystem;

std::string joined(const std::vector<std::string>& parts) {
    std::string result;
    for (const std::string& part : parts) {
        result += (result.empty() ? "" : ":") + part;
    }
    return result;
}

std::vector<std::string> environment_of(const Setup& setup, const std::string& folder) {
    std::vector<std::string> preload = setup.preload;
    std::vector<std::string> result = setup.environment;
    result.push_back("FRAGTRACE_OUTPUT=" + folder);
    result.push_back("FRAGTRACE_KEEP_FREE=0");  // also where less than 10 % of the disk is free
    result.push_back("PATH=/usr/bin:/bin");
    result.push_back("HOME=/tmp");
    if (!setup.card.empty()) {
        std::ifstream list(std::string(FT_VGPU_DIR) + "/preload.list");
        for (std::string name; list >> name;) {
            preload.push_back(std::string(FT_VGPU_DIR) + "/" + name);
        }
        result.push_back("FRAGTRACE_VIRTUAL_GPU=" + setup.card);
        result.push_back(std::string("LD_LIBRARY_PATH=") + FT_VGPU_DIR);
    }
    if (!preload.empty()) {
        result.push_back("LD_PRELOAD=" + joined(preload));
    }
    return result;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (const std::string& text : texts) {
        result.push_back(const_cast<char*>(text.c_str()));
    }
    result.push_back(nullptr);
    return result;
}

}  // namespace

const TraceContents& Finished::trace() const {
    if (traces.size() != 1) {
        throw std::runtime_error(std::to_string(traces.size()) +
                                 " traces, one expected; output:\n" + output);
    }
    return traces.front();
}

Finished run(const std::vector<std::string>& command, const Setup& setup) {
    std::string folder = (fs::temp_directory_path() / "fragtrace-hooks-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) {
        throw std::runtime_error("no temporary folder");
    }
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) {
        throw std::runtime_error("no pipe");
    }
    const std::vector<std::string> environment = environment_of(setup, folder);
    const std::vector<char*> arguments = pointers(command);
    const std::vector<char*> variables = pointers(environment);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], 1);
        dup2(pipe_ends[1], 2);
        close(pipe_ends[0]);
        close(pipe_ends[1]);
        execve(arguments[0], arguments.data(), variables.data());
        _exit(127);
    }
    close(pipe_ends[1]);
    Finished finished;
    char buffer[4096];
    for (ssize_t count = 0; (count = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) {
        finished.output.append(buffer, static_cast<size_t>(count));
    }
    close(pipe_ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() == ".ftrace") {
            finished.traces.push_back(read_trace(entry.path()));
        }
    }
    fs::remove_all(folder);
    return finished;
}

std::string shim() {
    return FT_SHIM;
}

std::string built(const std::string& name) {
    return std::string(FT_BUILT) + "/" + name;
}

}  // namespace fragtrace::tests

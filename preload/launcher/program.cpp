#include "launcher/program.h"

#include "launcher/refusal.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

bool is_file_to_run(const std::string& path) {
    struct stat status = {};
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           access(path.c_str(), X_OK) == 0;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (const std::string& text : texts) {
        pointers.push_back(const_cast<char*>(text.c_str()));
    }
    pointers.push_back(nullptr);
    return pointers;
}

[[noreturn]] void become(const Program& program, const HeldSignals& signals, int failure_pipe) {
    for (const auto& [name, value] : program.environment) {
        setenv(name.c_str(), value.c_str(), 1);
    }
    if (program.output >= 0) {
        dup2(program.output, STDOUT_FILENO);
        dup2(program.errors_too ? program.output : open("/dev/null", O_WRONLY | O_CLOEXEC),
             STDERR_FILENO);
    }
    signals.give_back();
    execv(program.file.c_str(), pointers_to(program.arguments).data());
    int failure = errno;
    if (failure == ENOEXEC) {  // a script without an interpreter line
        std::vector<std::string> arguments = {"sh", program.file};
        arguments.insert(arguments.end(), program.arguments.begin() + 1, program.arguments.end());
        execv("/bin/sh", pointers_to(arguments).data());
        failure = errno;
    }
    if (write(failure_pipe, &failure, sizeof failure) != sizeof failure) {
        _exit(kCannotRun);
    }
    _exit(failure == ENOENT ? kNotFound : kCannotRun);
}

}  // namespace

std::string find_command(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        if (is_file_to_run(name)) {
            return name;
        }
        if (access(name.c_str(), F_OK) == 0) {
            throw Refusal{kCannotRun, name + ": cannot be run (no permission, or a folder)"};
        }
        throw Refusal{kNotFound, name + ": command not found"};
    }
    const char* variable = getenv("PATH");
    std::string_view folders = variable == nullptr ? "/bin:/usr/bin" : variable;
    for (;;) {
        const std::string_view folder = folders.substr(0, folders.find(':'));
        std::string path = (folder.empty() ? "." : std::string(folder)) + '/' + name;
        if (is_file_to_run(path)) {
            return path;
        }
        if (folder.size() == folders.size()) {
            throw Refusal{kNotFound, name + ": command not found"};
        }
        folders.remove_prefix(folder.size() + 1);
    }
}

Child::Child(const Program& program, const HeldSignals& signals) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        throw Refusal{kCannotRun, std::string("cannot make a pipe: ") + strerror(errno)};
    }
    const pid_t launcher = getpid();
    id_ = fork();
    if (id_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != launcher) {
            _exit(128 + SIGKILL);
        }
        become(program, signals, ends[1]);
    }
    const int failure = errno;
    close(ends[1]);
    failure_pipe_ = ends[0];
    if (id_ < 0) {
        close(failure_pipe_);
        throw Refusal{kCannotRun, std::string("cannot start a process: ") + strerror(failure)};
    }
}

Child::~Child() {
    close(failure_pipe_);
}

int Child::failure() const {
    int failure = 0;
    return read(failure_pipe_, &failure, sizeof failure) == sizeof failure ? failure : 0;
}

}  // namespace fragtrace::launcher

#include "launcher/probe.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

constexpr std::size_t kMostOutput_bytes = std::size_t{1} << 20;

double now_s() {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Reads once. Returns false at the end. Output beyond the limit is read and dropped, so that the
// child does not wait.
bool read_some(int from, std::string* to) {
    std::array<char, 65536> buffer;
    const ssize_t size = read(from, buffer.data(), buffer.size());
    if (size > 0) {
        const std::size_t room = kMostOutput_bytes - to->size();
        to->append(buffer.data(), std::min(static_cast<std::size_t>(size), room));
    }
    return size > 0 || (size < 0 && errno == EINTR);
}

// Collects what the child prints until it has closed both pipes, or until the time is over.
void collect(int output, int errors, double end_s, Probe* probe) {
    std::array<pollfd, 2> pipes = {{{output, POLLIN, 0}, {errors, POLLIN, 0}}};
    while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
        const double left_s = end_s - now_s();
        if (left_s <= 0) {
            return;
        }
        if (poll(pipes.data(), pipes.size(), static_cast<int>(left_s * 1000) + 1) <= 0) {
            continue;
        }
        if (pipes[0].revents != 0 && !read_some(output, &probe->output)) {
            pipes[0].fd = -1;
        }
        if (pipes[1].revents != 0 && !read_some(errors, &probe->errors)) {
            pipes[1].fd = -1;
        }
    }
}

// Waits until the time is over. A process that a driver holds may not end even when it is killed.
bool ended_within(pid_t child, double end_s, int* status) {
    for (;;) {
        if (waitpid(child, status, WNOHANG) == child) {
            return true;
        }
        if (now_s() >= end_s) {
            return false;
        }
        usleep(2000);
    }
}

Probe run_child(const std::function<void(int output, int errors)>& child_part, int limit_s) {
    Probe probe;
    int output[2];
    int errors[2];
    if (pipe2(output, O_CLOEXEC) != 0) {
        return probe;
    }
    if (pipe2(errors, O_CLOEXEC) != 0) {
        close(output[0]);
        close(output[1]);
        return probe;
    }
    const double end_s = now_s() + limit_s;
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        child_part(output[1], errors[1]);
        _exit(0);
    }
    close(output[1]);
    close(errors[1]);
    if (child > 0) {
        setpgid(child, child);
        collect(output[0], errors[0], end_s, &probe);
        probe.in_time = ended_within(child, end_s, &probe.status);
        kill(-child, SIGKILL);  // also what it has started
        if (!probe.in_time) {
            ended_within(child, now_s() + 1, &probe.status);
        }
    }
    close(output[0]);
    close(errors[0]);
    return probe;
}

}  // namespace

Probe probe_function(const std::function<void(int output)>& function, int limit_s) {
    return run_child(
        [&function](int output, int errors) {
            dup2(errors, STDOUT_FILENO);  // what a library prints is not our answer
            dup2(errors, STDERR_FILENO);
            function(output);
        },
        limit_s);
}

Probe probe_command(const std::vector<std::string>& command,
                    const std::vector<std::pair<std::string, std::string>>& environment,
                    int limit_s) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& word : command) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    return run_child(
        [&](int output, int errors) {
            const int empty = open("/dev/null", O_RDONLY);
            dup2(empty, STDIN_FILENO);
            dup2(output, STDOUT_FILENO);
            dup2(errors, STDERR_FILENO);
            for (const auto& [name, value] : environment) {
                setenv(name.c_str(), value.c_str(), 1);
            }
            execvp(arguments[0], arguments.data());
            _exit(errno == ENOENT ? 127 : 126);
        },
        limit_s);
}

}  // namespace fragtrace::launcher

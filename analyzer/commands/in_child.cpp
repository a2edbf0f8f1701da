#include "analyzer/commands/in_child.h"

#include "analyzer/commands/run.h"
#include "analyzer/trace/absorb_ring.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostErrors_bytes = 65536;

// Closes both ends of a pipe when it goes out of scope.
struct Pipe {
    Pipe() {
        if (pipe2(ends.data(), O_CLOEXEC) != 0) {
            ends = {-1, -1};
        }
    }

    ~Pipe() {
        close_end(0);
        close_end(1);
    }

    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    void close_end(int which) {
        if (ends.at(which) >= 0) {
            close(ends.at(which));
            ends.at(which) = -1;
        }
    }

    std::array<int, 2> ends;
};

// The parent's ends are closed: with the write end open, standard input would never end.
[[noreturn]] void become_command(const std::vector<std::string>& words,
                                 const std::array<Pipe*, 3>& pipes) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(pipes[0]->ends[0], STDIN_FILENO);
    dup2(pipes[1]->ends[1], STDOUT_FILENO);
    dup2(pipes[2]->ends[1], STDERR_FILENO);
    for (Pipe* pipe : pipes) {
        pipe->close_end(0);
        pipe->close_end(1);
    }
    const rlimit no_bytes = {0, 0};  // of files; pipes are not affected
    setrlimit(RLIMIT_FSIZE, &no_bytes);
    std::signal(SIGXFSZ, SIG_IGN);
    keep_rings();
    std::vector<char*> arguments;
    std::string name = "fraganalyze";
    arguments.push_back(name.data());
    for (const std::string& word : words) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    const int status = run_command_line(static_cast<int>(arguments.size()) - 1, arguments.data());
    std::fflush(nullptr);
    _exit(status);
}

// Reads once; closes the pipe at its end. Returns false if `text` is full.
bool read_some(Pipe* pipe, std::size_t most, std::string* text) {
    std::array<char, 65536> buffer;
    const ssize_t size = read(pipe->ends[0], buffer.data(), buffer.size());
    if (size <= 0) {
        if (size == 0 || errno != EINTR) {
            pipe->close_end(0);
        }
        return true;
    }
    const std::size_t room = most - text->size();
    text->append(buffer.data(), std::min(room, static_cast<std::size_t>(size)));
    return static_cast<std::size_t>(size) <= room;
}

}  // namespace

ChildResult run_read_only(const std::vector<std::string>& words,
                          const std::string& input,
                          ChildLimits limits) {
    ChildResult result;
    Pipe in;
    Pipe out;
    Pipe errors;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        become_command(words, {&in, &out, &errors});
    }
    if (child < 0) {
        result.errors = "cannot start a process";
        return result;
    }
    in.close_end(0);
    out.close_end(1);
    errors.close_end(1);
    fcntl(in.ends[1], F_SETFL, O_NONBLOCK);
    const auto end = Clock::now() + std::chrono::seconds(limits.seconds);
    std::string_view rest = input;
    while (out.ends[0] >= 0 || errors.ends[0] >= 0) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0 || !result.whole) {
            result.in_time = left > 0;
            kill(child, SIGKILL);
            break;
        }
        if (rest.empty()) {
            in.close_end(1);
        }
        std::array<pollfd, 3> waiting = {
            {{out.ends[0], POLLIN, 0}, {errors.ends[0], POLLIN, 0}, {in.ends[1], POLLOUT, 0}}};
        if (poll(waiting.data(), waiting.size(), static_cast<int>(left) + 1) <= 0) {
            continue;
        }
        if (waiting[0].revents != 0) {
            result.whole = read_some(&out, limits.output_bytes, &result.output);
        }
        if (waiting[1].revents != 0) {
            read_some(&errors, kMostErrors_bytes, &result.errors);
        }
        if (waiting[2].revents != 0) {
            const ssize_t sent = write(in.ends[1], rest.data(), rest.size());
            if (sent > 0) {
                rest.remove_prefix(static_cast<std::size_t>(sent));
            } else if (errno != EAGAIN && errno != EINTR) {
                rest = {};  // it reads no more
            }
        }
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result;
}

}  // namespace fragtrace::analyzer

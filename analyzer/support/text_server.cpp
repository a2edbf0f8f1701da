#include "analyzer/support/text_server.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostConnections = 32;
constexpr std::size_t kMostRequest_bytes = 8192;
constexpr std::chrono::seconds kMostTime{5};

struct Address {
    sockaddr_storage storage = {};
    socklen_t size = 0;
    bool loopback = false;
};

bool read_port(std::string_view text, std::uint16_t* port) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *port);
    return failed == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool read_address(std::string_view text, Address* address) {
    const std::size_t colon = text.rfind(':');
    std::uint16_t port = 0;
    if (colon == std::string_view::npos || !read_port(text.substr(colon + 1), &port)) {
        return false;
    }
    std::string host(text.substr(0, colon));
    if (host.empty()) {
        host = "127.0.0.1";
    }
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        auto* at = reinterpret_cast<sockaddr_in6*>(&address->storage);
        at->sin6_family = AF_INET6;
        at->sin6_port = htons(port);
        address->size = sizeof *at;
        if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &at->sin6_addr) != 1) {
            return false;
        }
        address->loopback = IN6_IS_ADDR_LOOPBACK(&at->sin6_addr) != 0;
        return true;
    }
    auto* at = reinterpret_cast<sockaddr_in*>(&address->storage);
    at->sin_family = AF_INET;
    at->sin_port = htons(port);
    address->size = sizeof *at;
    if (inet_pton(AF_INET, host.c_str(), &at->sin_addr) != 1) {
        return false;
    }
    address->loopback = ntohl(at->sin_addr.s_addr) >> 24 == 127;
    return true;
}

std::string text_of(const sockaddr_storage& storage) {
    std::array<char, INET6_ADDRSTRLEN> text = {};
    if (storage.ss_family == AF_INET6) {
        const auto* at = reinterpret_cast<const sockaddr_in6*>(&storage);
        inet_ntop(AF_INET6, &at->sin6_addr, text.data(), text.size());
        return fmt::format("[{}]:{}", text.data(), ntohs(at->sin6_port));
    }
    const auto* at = reinterpret_cast<const sockaddr_in*>(&storage);
    inet_ntop(AF_INET, &at->sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(at->sin_port));
}

std::string response(std::string_view status, std::string_view body) {
    return fmt::format(
        "HTTP/1.1 {}\r\n"
        "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
        "Content-Length: {}\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n{}",
        status,
        body.size(),
        body);
}

// The value of the header Host without its port, in lower case; empty if there is none.
std::string host_of(std::string_view request) {
    while (!request.empty()) {
        const std::size_t end = std::min(request.find("\r\n"), request.size());
        const std::string_view line = request.substr(0, end);
        request.remove_prefix(std::min(end + 2, request.size()));
        const std::size_t colon = line.find(':');
        std::string name(line.substr(0, std::min(colon, line.size())));
        std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
            return static_cast<char>(std::tolower(c));
        });
        if (name != "host" || colon == std::string_view::npos) {
            continue;
        }
        std::string value(line.substr(colon + 1));
        std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) {
            return static_cast<char>(std::tolower(c));
        });
        value.erase(0, value.find_first_not_of(" \t"));
        value = value.substr(0, value.find_last_not_of(" \t") + 1);
        const std::size_t port = value.rfind(':');
        const bool in_brackets = port != std::string::npos && value.find(']', port) != value.npos;
        return port == std::string::npos || in_brackets ? value : value.substr(0, port);
    }
    return "";
}

}  // namespace

struct TextServer::Connection {
    int socket;
    Clock::time_point end;
    std::string request;
    std::string answer;  // not empty: it is being sent
    std::size_t sent = 0;
    bool done = false;
};

Result<TextServer> TextServer::listen(const std::string& where, std::string path) {
    Address address;
    if (!read_address(where, &address)) {
        return Error{ErrorCode::kUsage,
                     fmt::format("'{}' is no address: give :PORT or ADDRESS:PORT, such as :9464 or "
                                 "0.0.0.0:9464",
                                 where)};
    }
    TextServer server;
    server.loopback_ = address.loopback;
    server.path_ = std::move(path);
    server.socket_ =
        socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (server.socket_ < 0 ||
        setsockopt(server.socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(server.socket_, reinterpret_cast<sockaddr*>(&address.storage), address.size) != 0 ||
        ::listen(server.socket_, kMostConnections) != 0) {
        return Error{ErrorCode::kOutput,
                     fmt::format("cannot listen at {}: {}", where, std::strerror(errno))};
    }
    socklen_t size = sizeof address.storage;
    getsockname(server.socket_, reinterpret_cast<sockaddr*>(&address.storage), &size);
    server.address_ = text_of(address.storage);
    return server;
}

TextServer::TextServer(TextServer&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      loopback_(other.loopback_),
      address_(std::move(other.address_)),
      path_(std::move(other.path_)),
      connections_(std::move(other.connections_)) {}

TextServer::~TextServer() {
    for (const Connection& connection : connections_) {
        close(connection.socket);
    }
    if (socket_ >= 0) {
        close(socket_);
    }
}

std::string TextServer::url() const {
    return "http://" + address_ + path_;
}

void TextServer::accept_all() {
    while (connections_.size() < kMostConnections) {
        const int socket = accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket < 0) {
            return;
        }
        connections_.push_back({socket, Clock::now() + kMostTime, {}, {}});
    }
}

void TextServer::read_from(Connection* connection) {
    std::array<char, 4096> buffer;
    const ssize_t size = recv(connection->socket, buffer.data(), buffer.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (size <= 0) {
        connection->done = true;
        return;
    }
    connection->request.append(buffer.data(), static_cast<std::size_t>(size));
    if (connection->request.find("\r\n\r\n") != std::string::npos) {
        answer(connection);
    } else if (connection->request.size() > kMostRequest_bytes) {
        connection->answer = response("431 Request Header Fields Too Large", "");
    }
}

void TextServer::answer(Connection* connection) {
    const std::string_view request = connection->request;
    const std::string_view line = request.substr(0, request.find("\r\n"));
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == std::string_view::npos || last <= first ||
        !line.substr(last + 1).starts_with("HTTP/1.")) {
        connection->answer = response("400 Bad Request", "");
        return;
    }
    std::string_view path = line.substr(first + 1, last - first - 1);
    path = path.substr(0, path.find('?'));
    // A page of another site must not read the text through a browser of this machine, under a name
    // that it has made point here.
    const std::string host = host_of(request.substr(0, request.find("\r\n\r\n")));
    if (loopback_ && !host.empty() && host != "localhost" && host != "[::1]" &&
        !host.starts_with("127.")) {
        connection->answer = response("403 Forbidden", "Ask as localhost.\n");
    } else if (line.substr(0, first) != "GET") {
        connection->answer = response("405 Method Not Allowed", "Only GET.\n");
    } else if (path != path_) {
        connection->answer = response("404 Not Found", fmt::format("Only {}.\n", path_));
    } else {
        if (!is_made_) {
            made_ = (*text_)();
            is_made_ = true;
        }
        connection->answer = response("200 OK", made_);
    }
}

void TextServer::serve_for(double seconds, const std::function<std::string()>& text) {
    const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                     std::chrono::duration<double>(seconds));
    text_ = &text;
    is_made_ = false;
    for (;;) {
        const Clock::time_point now = Clock::now();
        connections_.remove_if([now](const Connection& connection) {
            const bool ends = connection.done || now >= connection.end;
            if (ends) {
                close(connection.socket);
            }
            return ends;
        });
        if (now >= end) {
            return;
        }
        Clock::time_point next = end;
        std::vector<pollfd> waiting = {
            {connections_.size() < kMostConnections ? socket_ : -1, POLLIN, 0}};
        for (const Connection& connection : connections_) {
            next = std::min(next, connection.end);
            waiting.push_back({connection.socket,
                               static_cast<short>(connection.answer.empty() ? POLLIN : POLLOUT),
                               0});
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - now);
        if (poll(waiting.data(), waiting.size(), static_cast<int>(left.count()) + 1) <= 0) {
            continue;
        }
        std::size_t i = 0;
        for (Connection& connection : connections_) {
            const short events = waiting[++i].revents;
            if (events == 0) {
                continue;
            }
            if (connection.answer.empty()) {
                read_from(&connection);
            } else {
                const ssize_t sent = send(connection.socket,
                                          connection.answer.data() + connection.sent,
                                          connection.answer.size() - connection.sent,
                                          MSG_NOSIGNAL);
                connection.sent += sent > 0 ? static_cast<std::size_t>(sent) : 0;
                connection.done = connection.sent == connection.answer.size() ||
                                  (sent < 0 && errno != EAGAIN && errno != EINTR);
            }
        }
        if (waiting[0].revents != 0) {
            accept_all();
        }
    }
}

}  // namespace fragtrace::analyzer

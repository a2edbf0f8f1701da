// A small HTTP/1.1 server of one text, for monitoring systems that ask for it every few seconds.
//
// It answers GET for one path and closes each connection after its answer. It has fixed limits: 32
// connections, 8 KiB per request, 5 s per connection. A client beyond them is dropped, and others
// are not affected. Not thread-safe.
#pragma once

#include "analyzer/support/result.h"

#include <functional>
#include <list>
#include <string>

namespace fragtrace::analyzer {

class TextServer {
  public:
    // Listens at ADDRESS:PORT, such as 0.0.0.0:9464 or [::1]:9464. Without an address, at
    // 127.0.0.1, which only programs of this machine reach. Port 0 chooses a free one. Errors:
    // kUsage for another form, kOutput if the address cannot be used.
    static Result<TextServer> listen(const std::string& where, std::string path);

    TextServer(TextServer&& other) noexcept;
    TextServer& operator=(TextServer&&) = delete;
    TextServer(const TextServer&) = delete;
    TextServer& operator=(const TextServer&) = delete;
    ~TextServer();

    // "http://127.0.0.1:9464/metrics".
    [[nodiscard]] std::string url() const;

    // False: other machines can ask, as far as the network lets them.
    [[nodiscard]] bool only_this_machine() const { return loopback_; }

    // Answers requests for this time. `text` makes the answer, at most once per call.
    void serve_for(double seconds, const std::function<std::string()>& text);

  private:
    struct Connection;

    TextServer() = default;
    void accept_all();
    void read_from(Connection* connection);
    void answer(Connection* connection);

    int socket_ = -1;
    bool loopback_ = false;
    std::string address_;  // with the port
    std::string path_;
    const std::function<std::string()>* text_ = nullptr;
    std::string made_;  // the answer of this call of serve_for()
    bool is_made_ = false;
    std::list<Connection> connections_;
};

}  // namespace fragtrace::analyzer

// The coroutine type of handlers. The one Asio name that other folders see.
#pragma once

#include <boost/asio/awaitable.hpp>

namespace linnet::http {

// A Task runs on the IO thread of its connection, from the first co_await on it; awaiting one never changes the thread.
//
// g++ 12 miscompiles a co_await inside an if's condition, and mishandles temporaries in a co_await's arguments: keep to named
// locals on both sides, `const bool sent = co_await writer.send(std::move(response));`.
template <class T = void>
using Task = boost::asio::awaitable<T>;

}  // namespace linnet::http

#include "sandbox/child_io.hpp"

namespace ars::sandbox {

base::Result<std::unique_ptr<ChildIo>> make_child_io(
    boost::asio::any_io_executor executor, IoBackend backend
) {
    if (backend != IoBackend::epoll) {
        const int error = try_io_uring();
        if (error == 0) {
            return make_uring_io(std::move(executor));
        }
        if (backend == IoBackend::io_uring) {
            return base::fail_errno("io_uring_unavailable", "io_uring", error);
        }
    }
    return make_epoll_io(std::move(executor));
}

}  // namespace ars::sandbox

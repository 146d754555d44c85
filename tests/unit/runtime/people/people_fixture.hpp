// A directory of people over a real store, and a way to wait for its changes.
#pragma once

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "runtime/people/directory.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <stdlib.h>

namespace ars::people {

inline constexpr const char* kRootSecret = "root-secret-of-the-test";
inline constexpr const char* kAliceSecret = "alice-secret-of-the-test";

class PeopleTest : public ::testing::Test {
  protected:
    PeopleTest() {
        char name[] = "/tmp/ars-people-test-XXXXXX";
        directory_ = ::mkdtemp(name);
    }
    ~PeopleTest() override {
        people_.reset();
        store_.reset();
        for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
            std::filesystem::remove(entry.path());
        }
        std::filesystem::remove(directory_);
    }

    // Also after a restart: the store stays, the directory is read anew.
    void open(Declaration declaration) {
        people_.reset();
        store_.reset();
        auto opened = store::Store::open(
            {.directory = directory_, .max_size = std::size_t{1} << 28U, .sync = false}, log_
        );
        ASSERT_TRUE(opened) << opened.error().message;
        store_ = std::move(*opened);
        auto people = Directory::open(io_.get_executor(), *store_, log_, std::move(declaration));
        ASSERT_TRUE(people) << people.error().message;
        people_ = std::move(*people);
    }
    void SetUp() override { open(declared()); }

    // root (superadmin), adam (admin) and alice (user); root and alice have declared keys.
    static Declaration declared() {
        Declaration out;
        out.file = "/etc/appliance.yaml";
        out.users = {
            {"root", UserRole::superadmin, ""},
            {"adam", UserRole::admin, ""},
            {"alice", UserRole::user, "research"}
        };
        out.keys.push_back({.name = "r", .sha256 = base::sha256_hex(kRootSecret), .uid = "root"});
        out.keys.push_back({.name = "a", .sha256 = base::sha256_hex(kAliceSecret), .uid = "alice"});
        return out;
    }
    static Caller caller(const std::string& uid, UserRole role) {
        return {.user = {uid, role, ""}, .key_name = "k", .key_uid = uid};
    }
    const Caller root_ = caller("root", UserRole::superadmin);
    const Caller adam_ = caller("adam", UserRole::admin);
    const Caller alice_ = caller("alice", UserRole::user);

    template <class T>
    T wait(base::Task<T> task) {
        std::optional<T> out;
        base::asio::co_spawn(io_, std::move(task), [&out](std::exception_ptr error, T value) {
            if (error) {
                std::rethrow_exception(error);
            }
            out.emplace(std::move(value));
        });
        io_.restart();
        io_.run();
        return std::move(*out);
    }
    void wait(base::Task<void> task) {
        base::asio::co_spawn(io_, std::move(task), [](std::exception_ptr error) {
            if (error) {
                std::rethrow_exception(error);
            }
        });
        io_.restart();
        io_.run();
    }

    CreatedKey make_key(const Caller& by, NewKey wanted) {
        auto made = wait(people_->create_key(by, std::move(wanted)));
        EXPECT_TRUE(made) << made.error().message;
        return made.value_or(CreatedKey{});
    }
    // The code of what came back instead of a value.
    template <class T>
    static std::string code(const base::Result<T>& result) {
        return result ? "ok" : result.error().code;
    }
    const ApiKey* use(const std::string& secret) {
        return people_->use_key(base::sha256_hex(secret), base::now_ms());
    }
    std::vector<boost::json::object> audit(std::uint64_t after = 0, std::size_t limit = SIZE_MAX) {
        std::vector<boost::json::object> out;
        for (const std::string& line : store_->read([&](const store::ReadTxn& txn) {
                 return audit_lines(txn, after, limit);
             })) {
            out.push_back(boost::json::parse(line).as_object());
        }
        return out;
    }

    base::Log log_{2, base::LogLevel::off};
    std::string directory_;
    base::asio::io_context io_{1};
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<Directory> people_;
};

}  // namespace ars::people

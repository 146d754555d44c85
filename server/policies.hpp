// The one place where sandbox policies are built: the built-in ones, and those of appliance.yaml
// over them. Whoever looks for what may share the network or trace finds the two lines here.
#pragma once

#include "base/result.hpp"
#include "sandbox/policy.hpp"
#include "server/sandbox_config.hpp"

#include <map>
#include <string>
#include <vector>

namespace ars::server {

class Policies {
  public:
    // `default` (loopback only), `debug` (the same with ptrace), `build` (the server's network) and
    // `host`, its older name. An own policy of one of these names takes its place.
    Policies() : Policies(std::map<std::string, PolicyConfig>{}) {}
    explicit Policies(const std::map<std::string, PolicyConfig>& own);

    // Error "unknown_policy" says which there are and which was probably meant.
    [[nodiscard]] base::Result<sandbox::Policy> find(const std::string& name) const;
    [[nodiscard]] std::vector<std::string> names() const;

  private:
    std::map<std::string, sandbox::Policy> policies_;
};

}  // namespace ars::server

// Telling others that a run has ended. The store's outbox holds what is still to be told: an entry
// is written in the commit that ends the run and goes only after the receiver said 2xx, so a
// delivery survives every kill and may come twice, with the same id and the same bytes.
#pragma once

#include "base/log.hpp"
#include "base/task_group.hpp"
#include "runtime/models/endpoint.hpp"
#include "runtime/models/http_client.hpp"
#include "runtime/runs/run_manager.hpp"

#include <list>
#include <string>
#include <vector>

namespace ars::server {

struct Webhook {
    std::string name;  // of its queue in the outbox: what is open stays with the name
    models::Endpoint endpoint;
    std::string secret;
    std::string ca_file;
    std::string uid;                         // only runs of this user; "" = of all
    std::vector<store::RunStatus> statuses;  // none = all terminal ones
    base::milliseconds timeout{10'000};
};

struct WebhookLimits {
    std::size_t parallel = 4;                  // deliveries of one webhook at a time
    std::uint32_t attempts = 30;               // about a day, then it is given up
    base::milliseconds first_pause{1'000};     // doubled after each failure,
    base::milliseconds last_pause{3'600'000};  // up to this
    base::milliseconds look{250};  // how often the outbox is looked into: one key, no disk
};

class Webhooks {
  public:
    // `store` keeps an outbox. All references outlive this, and stop() comes before its end.
    Webhooks(
        base::asio::any_io_executor executor,
        std::vector<Webhook> hooks,
        store::Store& store,
        const runs::RunManager& runs,
        const base::Log& log,
        WebhookLimits limits = {}
    );
    Webhooks(const Webhooks&) = delete;
    Webhooks& operator=(const Webhooks&) = delete;

    void start();
    // What is under way is cut, and delivered again after the next start.
    base::Task<void> stop();

  private:
    struct Hook {
        Hook(Webhook wanted, base::asio::any_io_executor executor)
            : settings(std::move(wanted)),
              queue(store::outbox_queue(settings.name)),
              client(
                  std::move(executor),
                  {settings.endpoint, settings.ca_file, settings.timeout, settings.timeout}
              ) {}
        Webhook settings;
        std::uint64_t queue;
        models::HttpClient client;
    };
    enum class Answer : std::uint8_t { delivered, gone, failed };

    base::Task<void> share_out();
    base::Task<void> serve(Hook& hook);
    base::Task<void> deliver(Hook& hook, store::OutboxRecord entry);
    base::Task<Answer> send(Hook& hook, const store::RunRecord& run, std::string& reason);
    base::Task<void> settle(store::OutboxRecord done, std::vector<store::OutboxRecord> next);

    store::Store& store_;
    const runs::RunManager& runs_;
    const base::Log& log_;
    WebhookLimits limits_;
    std::list<Hook> hooks_;
    base::Notifier shared_out_;
    base::TaskGroup tasks_;
};

// The same for every attempt: the receiver tells a repeated delivery by it.
[[nodiscard]] std::string delivery_id(const std::string& webhook, const std::string& run_id);
// The value of the header X-ARS-Signature-256: HMAC-SHA-256 of the body's bytes.
[[nodiscard]] std::string signature_of(const std::string& secret, std::string_view body);

}  // namespace ars::server

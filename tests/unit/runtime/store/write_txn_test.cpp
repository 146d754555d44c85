#include "tests/unit/runtime/store/store_fixture.hpp"

namespace ars::store {
namespace {

class Writes : public StoreTest {
  protected:
    template <class F>
    auto read(F f) {
        return store_->read([&](const ReadTxn& txn) { return f(txn); });
    }
    void set_status(RunRecord& run, RunStatus status) {
        run.status = status;
        write([&](WriteTxn& txn) { txn.put_run(run); });
    }
    std::optional<RunNo> open_run(const ThreadRecord& thread) {
        return read([&](const ReadTxn& txn) { return txn.open_run_of_thread(thread.no); });
    }
    std::vector<RunNo> open_runs() {
        return read([](const ReadTxn& txn) { return txn.open_runs(); });
    }
    // The message of the error that a broken promise gives.
    std::string fault(const std::function<void(WriteTxn&)>& change) {
        const auto result = try_write(change);
        EXPECT_FALSE(result);
        EXPECT_EQ(result ? "" : result.error().code, "internal");
        return result ? "" : result.error().message;
    }
};

TEST_F(Writes, EmptyNumbersIdsAndTimesAreAssigned) {
    const ThreadRecord thread = new_thread();
    EXPECT_EQ(thread.no, 1U);
    EXPECT_EQ(thread.id.size(), 36U);
    EXPECT_EQ(thread.root, thread.no);
    EXPECT_GT(thread.created_ms, 0);
    EXPECT_EQ(thread.updated_ms, thread.created_ms);
    const RunRecord run = new_run(thread);
    EXPECT_EQ(run.no, 1U);
    EXPECT_EQ(run.id.size(), 36U);
    EXPECT_EQ(run.request_id.substr(0, 4), "req-");
    EXPECT_EQ(run.request_id.size(), 40U);
    EXPECT_EQ(run.root, run.no);
    EXPECT_GT(run.created_ms, 0);
}

TEST_F(Writes, GivenIdsAndTimesAreKept) {
    ThreadRecord thread;
    thread.id = "mine";
    thread.uid = "bob";
    thread.created_ms = 5;
    thread.updated_ms = 6;
    write([&](WriteTxn& txn) { txn.put_thread(thread); });
    const auto read_back = read([](const ReadTxn& txn) { return txn.thread_by_id("mine"); });
    ASSERT_TRUE(read_back);
    EXPECT_EQ(read_back->no, thread.no);
    EXPECT_EQ(read_back->created_ms, 5);
    EXPECT_EQ(read_back->updated_ms, 6);
}

TEST_F(Writes, ChildrenTakeTheRootOfTheirParent) {
    const ThreadRecord root = new_thread();
    ThreadRecord child;
    child.uid = "alice";
    child.parent = root.no;
    child.status = ThreadStatus::subagent;
    write([&](WriteTxn& txn) { txn.put_thread(child); });
    EXPECT_EQ(child.root, root.no);

    const RunRecord parent = new_run(root);
    RunRecord first;
    first.thread = child.no;
    first.parent = parent.no;
    first.status = RunStatus::completed;
    RunRecord second = first;
    write([&](WriteTxn& txn) {
        txn.put_run(first);
        txn.put_run(second);
    });
    EXPECT_EQ(first.root, parent.no);
    EXPECT_EQ(
        read([&](const ReadTxn& txn) { return txn.children_of(parent.no); }),
        (std::vector<RunNo>{first.no, second.no})
    );
    EXPECT_TRUE(read([&](const ReadTxn& txn) { return txn.children_of(first.no); }).empty());
}

TEST_F(Writes, LongAndHostileIdsAreFoundAndNeverMixedUp) {
    const std::string long_id(4000, 'x');
    std::vector<std::string> ids = {long_id, long_id + "y", std::string(200, 'z'), "T", "t", "r"};
    for (const auto& id : ids) {
        ThreadRecord thread;
        thread.id = id;
        thread.uid = "alice";
        write([&](WriteTxn& txn) { txn.put_thread(thread); });
    }
    for (const auto& id : ids) {
        const auto found = read([&](const ReadTxn& txn) { return txn.thread_by_id(id); });
        ASSERT_TRUE(found) << id.size();
        EXPECT_EQ(found->id, id);
    }
    for (const std::string& id : {std::string(), std::string(3999, 'x'), std::string("q")}) {
        EXPECT_FALSE(read([&](const ReadTxn& txn) { return txn.thread_by_id(id); }));
        EXPECT_FALSE(read([&](const ReadTxn& txn) { return txn.run_by_id(id); }));
        EXPECT_FALSE(read([&](const ReadTxn& txn) { return txn.run_by_request(id); }));
    }
}

TEST_F(Writes, ThreadsOfAUserComeNewestFirstWithoutDeletedAndSubAgentsThreads) {
    std::vector<ThreadRecord> mine;
    for (int i = 0; i < 6; ++i) {
        mine.push_back(new_thread());
        new_thread("bob");
    }
    ThreadRecord child;
    child.uid = "alice";
    child.status = ThreadStatus::subagent;
    mine[2].status = ThreadStatus::deleted;
    mine[3].status = ThreadStatus::archived;
    mine[4].agent_slug = "writer";
    write([&](WriteTxn& txn) {
        txn.put_thread(child);
        txn.put_thread(mine[2]);
        txn.put_thread(mine[3]);
    });
    const auto list = [&](const std::string& slug, std::size_t limit, std::size_t offset) {
        std::vector<ThreadNo> out;
        for (const auto& thread : read([&](const ReadTxn& txn) {
                 return txn.threads_of("alice", slug, limit, offset);
             })) {
            out.push_back(thread.no);
        }
        return out;
    };
    const std::vector<ThreadNo> all = {mine[5].no, mine[4].no, mine[3].no, mine[1].no, mine[0].no};
    EXPECT_EQ(list("", 100, 0), all);
    EXPECT_EQ(list("", 2, 1), (std::vector<ThreadNo>{mine[4].no, mine[3].no}));
    write([&](WriteTxn& txn) { txn.put_thread(mine[4]); });
    EXPECT_EQ(list("writer", 100, 0), (std::vector<ThreadNo>{mine[4].no}));
    mine[1].is_pinned = true;
    mine[5].is_hidden = true;
    mine[0].title = "Größe und Preis";
    write([&](WriteTxn& txn) {
        txn.put_thread(mine[0]);
        txn.put_thread(mine[1]);
        txn.put_thread(mine[5]);
    });
    EXPECT_EQ(
        list("", 100, 0), (std::vector<ThreadNo>{mine[1].no, mine[4].no, mine[3].no, mine[0].no})
    );
    EXPECT_EQ(list("", 1, 1), (std::vector<ThreadNo>{mine[4].no}));
    mine[1].is_pinned = false;
    write([&](WriteTxn& txn) { txn.put_thread(mine[1]); });
    EXPECT_EQ(
        list("", 100, 0), (std::vector<ThreadNo>{mine[4].no, mine[3].no, mine[1].no, mine[0].no})
    );
    const auto found =
        read([](const ReadTxn& txn) { return txn.threads_of("alice", "", 9, 0, "UND pREIS"); });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].no, mine[0].no);
    EXPECT_TRUE(read([](const ReadTxn& txn) { return txn.threads_of("eve", "", 9, 0); }).empty());
}

TEST_F(Writes, AThreadIsFoundByTheRequestOfItsUser) {
    ThreadRecord thread;
    thread.uid = "alice";
    thread.request_id = "r1";
    ThreadRecord other = thread;
    other.uid = "bob";
    write([&](WriteTxn& txn) {
        txn.put_thread(thread);
        txn.put_thread(other);
    });
    const auto find = [&](const char* uid, const char* id) {
        const auto found = read([&](const ReadTxn& txn) { return txn.thread_by_request(uid, id); });
        return found ? found->no : 0;
    };
    EXPECT_EQ(find("alice", "r1"), thread.no);
    EXPECT_EQ(find("bob", "r1"), other.no);
    EXPECT_EQ(find("alice", "r2"), 0U);
    EXPECT_EQ(find("alice", ""), 0U);
}

TEST_F(Writes, ARunIsFoundByNumberIdAndRequest) {
    const ThreadRecord thread = new_thread();
    RunRecord run;
    run.thread = thread.no;
    run.request_id = "key-1";
    run.agent_config = std::string(10000, 'c');
    run.usage.complete = false;
    write([&](WriteTxn& txn) { txn.put_run(run); });
    const auto by_id = read([&](const ReadTxn& txn) { return txn.run_by_id(run.id); });
    const auto by_request = read([](const ReadTxn& txn) { return txn.run_by_request("key-1"); });
    ASSERT_TRUE(by_id);
    ASSERT_TRUE(by_request);
    EXPECT_EQ(by_id->no, run.no);
    EXPECT_EQ(by_request->no, run.no);
    EXPECT_EQ(by_id->agent_config, run.agent_config);
    EXPECT_FALSE(by_id->usage.complete);
    EXPECT_FALSE(read([](const ReadTxn& txn) { return txn.run(99); }));
}

TEST_F(Writes, BothHalvesOfARunCanChange) {
    RunRecord run = new_run(new_thread());
    run.steps = 3;
    run.scope_id = "late";  // part of the facts
    write([&](WriteTxn& txn) { txn.put_run(run); });
    const auto stored = read([&](const ReadTxn& txn) { return txn.run(run.no); });
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->steps, 3U);
    EXPECT_EQ(stored->scope_id, "late");
}

TEST_F(Writes, OpenRunsFollowTheStatusOldestFirst) {
    const ThreadRecord a = new_thread();
    const ThreadRecord b = new_thread();
    RunRecord first = new_run(a);
    RunRecord second = new_run(b, RunStatus::running);
    EXPECT_EQ(open_runs(), (std::vector<RunNo>{first.no, second.no}));
    EXPECT_EQ(open_run(a), first.no);
    EXPECT_EQ(open_run(b), second.no);

    set_status(first, RunStatus::interrupted);
    EXPECT_EQ(open_runs(), (std::vector<RunNo>{first.no, second.no}))
        << "interrupted is not terminal";
    EXPECT_FALSE(open_run(a)) << "but it frees its thread";

    set_status(second, RunStatus::cancel_requested);
    EXPECT_EQ(open_run(b), second.no);
    set_status(second, RunStatus::cancelled);
    EXPECT_FALSE(open_run(b));
    EXPECT_EQ(open_runs(), (std::vector<RunNo>{first.no}));

    const RunRecord resumed = new_run(a);
    EXPECT_EQ(open_run(a), resumed.no);
    EXPECT_EQ(read([&](const ReadTxn& txn) { return txn.latest_run_of_thread(a.no); }), resumed.no);
    set_status(first, RunStatus::cancelled);
    EXPECT_EQ(open_runs(), (std::vector<RunNo>{resumed.no}));
    EXPECT_EQ(open_run(a), resumed.no);
    EXPECT_FALSE(read([](const ReadTxn& txn) { return txn.latest_run_of_thread(99); }));
}

TEST_F(Writes, ARunThatIsBornTerminalIsNeverOpen) {
    const ThreadRecord thread = new_thread();
    new_run(thread, RunStatus::failed);
    EXPECT_TRUE(open_runs().empty());
    EXPECT_FALSE(open_run(thread));
}

TEST_F(Writes, ATerminalRunNeverChangesItsStatus) {
    RunRecord run = new_run(new_thread());
    set_status(run, RunStatus::completed);
    RunRecord again = run;
    again.status = RunStatus::running;
    EXPECT_NE(
        fault([&](WriteTxn& txn) { txn.put_run(again); }).find("terminal"), std::string::npos
    );
    again.status = RunStatus::cancelled;
    EXPECT_NE(
        fault([&](WriteTxn& txn) { txn.put_run(again); }).find("terminal"), std::string::npos
    );
    const auto stored = read([&](const ReadTxn& txn) { return txn.run(run.no); });
    EXPECT_EQ(stored->status, RunStatus::completed);
}

TEST_F(Writes, TwoRunsNeverShareARequestId) {
    const ThreadRecord thread = new_thread();
    RunRecord first = new_run(thread);
    RunRecord second;
    second.thread = thread.no;
    second.request_id = first.request_id;
    EXPECT_NE(
        fault([&](WriteTxn& txn) { txn.put_run(second); }).find("request id"), std::string::npos
    );
    EXPECT_FALSE(read([](const ReadTxn& txn) { return txn.run(2); }));
}

TEST_F(Writes, IdentityOfStoredThreadsAndRunsIsFixed) {
    ThreadRecord thread = new_thread();
    RunRecord run = new_run(thread);
    thread.uid = "mallory";
    fault([&](WriteTxn& txn) { txn.put_thread(thread); });
    run.id = "other";
    fault([&](WriteTxn& txn) { txn.put_run(run); });
    RunRecord unknown;
    unknown.no = 77;
    fault([&](WriteTxn& txn) { txn.put_run(unknown); });
}

TEST_F(Writes, MessagesOfAThreadComeOldestFirstAfterACursor) {
    const ThreadRecord a = new_thread();
    const ThreadRecord b = new_thread();
    std::vector<Seq> seqs;
    for (int i = 0; i < 5; ++i) {
        MessageRecord message;
        message.thread = a.no;
        message.content = std::to_string(i);
        MessageRecord noise = message;
        noise.thread = b.no;
        CheckpointRecord checkpoint;
        checkpoint.thread = a.no;
        write([&](WriteTxn& txn) {
            txn.add_message(message);
            txn.add_message(noise);
            txn.add_checkpoint(checkpoint);
        });
        EXPECT_EQ(message.id.size(), 36U);
        seqs.push_back(message.seq);
    }
    const auto list = [&](Seq after, std::size_t limit) {
        return read([&](const ReadTxn& txn) { return txn.messages(a.no, after, limit); });
    };
    const auto all = list(0, SIZE_MAX);
    ASSERT_EQ(all.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(all[i].seq, seqs[i]);
        EXPECT_EQ(all[i].content, std::to_string(i));
    }
    ASSERT_EQ(list(seqs[1], 2).size(), 2U);
    EXPECT_EQ(list(seqs[1], 2)[0].seq, seqs[2]);
    EXPECT_TRUE(list(seqs[4], 9).empty());
    EXPECT_TRUE(list(UINT64_MAX, 9).empty());
    EXPECT_TRUE(read([](const ReadTxn& txn) { return txn.messages(99); }).empty());
    const auto one = read([&](const ReadTxn& txn) { return txn.message(seqs[3]); });
    ASSERT_TRUE(one);
    EXPECT_EQ(one->content, "3");
    EXPECT_FALSE(read([&](const ReadTxn& txn) { return txn.message(seqs[3] + 2); }))
        << "a checkpoint is no message";
}

TEST_F(Writes, AMessageOfManyMegabytesSurvives) {
    MessageRecord message;
    message.thread = 1;
    message.content.assign(16 * base::limits::kMiB, 'b');
    write([&](WriteTxn& txn) { txn.add_message(message); });
    const auto stored = read([&](const ReadTxn& txn) { return txn.message(message.seq); });
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->content, message.content);
}

TEST_F(Writes, CheckpointsComeNewestFirstBeforeACursor) {
    const ThreadRecord thread = new_thread();
    EXPECT_FALSE(read([&](const ReadTxn& txn) { return txn.latest_checkpoint(thread.no); }));
    std::vector<Seq> seqs;
    for (std::uint32_t step = 0; step < 4; ++step) {
        CheckpointRecord checkpoint;
        checkpoint.thread = thread.no;
        checkpoint.step = step;
        checkpoint.state = R"({"todos":[]})";
        MessageRecord message;
        message.thread = thread.no;
        write([&](WriteTxn& txn) {
            txn.add_checkpoint(checkpoint);
            txn.add_message(message);
        });
        seqs.push_back(checkpoint.seq);
    }
    const auto list = [&](Seq before, std::size_t limit) {
        std::vector<Seq> out;
        for (const auto& checkpoint :
             read([&](const ReadTxn& txn) { return txn.checkpoints(thread.no, before, limit); })) {
            out.push_back(checkpoint.seq);
        }
        return out;
    };
    EXPECT_EQ(list(0, 9), (std::vector<Seq>{seqs[3], seqs[2], seqs[1], seqs[0]}));
    EXPECT_EQ(list(seqs[2], 1), (std::vector<Seq>{seqs[1]}));
    EXPECT_TRUE(list(seqs[0], 9).empty());
    const auto latest = read([&](const ReadTxn& txn) { return txn.latest_checkpoint(thread.no); });
    ASSERT_TRUE(latest);
    EXPECT_EQ(latest->step, 3U);
    EXPECT_EQ(latest->state, R"({"todos":[]})");
    EXPECT_EQ(latest->id.size(), 36U);
}

TEST_F(Writes, ACallIsWrittenAsIntentAndAgainWithItsResult) {
    CallRecord call{.run = 5, .step = 2, .index = 1, .deadline_ms = 99};
    write([&](WriteTxn& txn) {
        txn.put_call({.run = 5, .step = 2, .index = 0});
        txn.put_call(call);
        txn.put_call({.run = 5, .step = 3, .index = 0});
        txn.put_call({.run = 6, .step = 2, .index = 0});
    });
    call.done = true;
    call.result = 17;
    call.child = 8;
    write([&](WriteTxn& txn) { txn.put_call(call); });
    const auto calls = read([](const ReadTxn& txn) { return txn.calls(5, 2); });
    ASSERT_EQ(calls.size(), 2U);
    EXPECT_FALSE(calls[0].done);
    EXPECT_EQ(calls[0].index, 0U);
    EXPECT_EQ(calls[1].run, 5U);
    EXPECT_EQ(calls[1].step, 2U);
    EXPECT_EQ(calls[1].index, 1U);
    EXPECT_TRUE(calls[1].done);
    EXPECT_EQ(calls[1].result, 17U);
    EXPECT_EQ(calls[1].child, 8U);
    EXPECT_EQ(calls[1].deadline_ms, 99);
    EXPECT_TRUE(read([](const ReadTxn& txn) { return txn.call(5, 2, 1); })->done);
    EXPECT_FALSE(read([](const ReadTxn& txn) { return txn.call(5, 2, 2); }));
}

TEST_F(Writes, AClosureSeesItsOwnChanges) {
    write([](WriteTxn& txn) {
        ThreadRecord thread;
        thread.uid = "alice";
        txn.put_thread(thread);
        RunRecord run;
        run.thread = thread.no;
        txn.put_run(run);
        EXPECT_EQ(txn.open_run_of_thread(thread.no), run.no);
        EXPECT_EQ(txn.run_by_request(run.request_id)->no, run.no);
        run.status = RunStatus::completed;
        txn.put_run(run);
        EXPECT_FALSE(txn.open_run_of_thread(thread.no));
    });
}

}  // namespace
}  // namespace ars::store

// Ids, and receives that are plain until somebody wants to know more.
#include "request/operation_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <vector>

namespace ist {
namespace {

std::array<std::byte, 16> buffer;

// A plain receive, as Engine::receive_at_once() makes it; the table has room for it.
PlainReceive& post(OperationTable& table, OperationId& id, std::int32_t source, const Group* group = nullptr) {
  table.release(table.add().index());  // so that there is a place
  PlainReceive* const plain = table.add_plain(id);
  plain->buffer = buffer.data();
  plain->room = Bytes{buffer.size()};
  plain->source = source;
  plain->group = group;
  return *plain;
}

TEST(OperationTable, NoIdComesTwice) {
  OperationTable table;
  std::set<std::uint64_t> seen;
  for (int n = 0; n < 1000; ++n) {
    const OperationId one = table.add();
    OperationId other;
    post(table, other, 0);
    EXPECT_TRUE(seen.insert(one.value).second);
    EXPECT_TRUE(seen.insert(other.value).second);
    table.release(one.index());
    EXPECT_EQ(nullptr, table.find(one));
    EXPECT_EQ(nullptr, table.find_line(one));
    table.release(other.index());
    EXPECT_EQ(nullptr, table.find(other));
    EXPECT_EQ(nullptr, table.find_wire(other.wire()));
  }
  EXPECT_TRUE(table.empty());
}

TEST(OperationTable, HasNoPlainOneWhereItWouldHaveToGrow) {
  OperationTable table;
  OperationId id;
  EXPECT_EQ(nullptr, table.add_plain(id));
  EXPECT_EQ(0U, id.value);
  EXPECT_TRUE(table.empty());
}

TEST(OperationTable, AnOperationIsMadeOfAPostedOneThatIsAskedFor) {
  OperationTable table;
  OperationId id;
  post(table, id, 3);
  EXPECT_FALSE(table.empty());
  EXPECT_TRUE(table.used(id.index()));
  EXPECT_NE(nullptr, table.posted().find(id.wire()));
  const Operation* const operation = table.find(id);
  ASSERT_NE(nullptr, operation);
  EXPECT_TRUE(operation->in<state::Posted>());
  EXPECT_EQ(3, operation->peer.value);
  EXPECT_EQ(buffer.data(), operation->piece.address());
  EXPECT_EQ(buffer.size(), operation->piece.size.value);
  EXPECT_EQ(KindId::host, operation->piece.kind);
  EXPECT_EQ(nullptr, operation->group);
  EXPECT_EQ(nullptr, table.posted().find(id.wire())) << "it is plain no longer";
  EXPECT_EQ(operation, table.find_wire(id.wire()));
  table.release(id.index());
  EXPECT_TRUE(table.empty());
}

TEST(OperationTable, AndOfOneThatIsDone) {
  OperationTable table;
  OperationId id;
  PlainReceive& plain = post(table, id, -1);
  plain.source = 5;
  plain.tag = 77;
  plain.bytes = Bytes{9};
  plain.stage = PlainReceive::Stage::done;
  const Operation& operation = table.at(id.index());
  EXPECT_TRUE(operation.in<state::Done>());
  EXPECT_TRUE(operation.outcome.status.ok());
  EXPECT_EQ(5, operation.outcome.source.value);
  EXPECT_EQ(5, operation.peer.value);
  EXPECT_EQ(77, operation.outcome.tag);
  EXPECT_EQ(9U, operation.outcome.bytes.value);
  EXPECT_EQ(IST_CARRIER_SLOT, operation.outcome.carrier);
  table.release(id.index());
  // The next one in its place has nothing of it.
  const OperationId next = table.add();
  ASSERT_EQ(id.index(), next.index());
  EXPECT_EQ(0U, table.at(next.index()).outcome.bytes.value);
  EXPECT_TRUE(table.at(next.index()).in<state::Queued>());
}

TEST(OperationTable, WhatIsStartedOnACommunicatorOutlivesIt) {
  OperationTable table;
  auto group = std::make_shared<const Group>(std::vector<Rank>{Rank{1}, Rank{0}}, 2, "reversed");
  const std::weak_ptr<const Group> watched = group;
  OperationId posted;
  OperationId other;
  post(table, posted, 1, group.get());
  post(table, other, 1);
  table.keep(group.get());
  group.reset();
  EXPECT_FALSE(watched.expired());
  ASSERT_NE(nullptr, table.at(posted.index()).group);
  EXPECT_EQ("reversed", table.at(posted.index()).group->name());
  EXPECT_NE(nullptr, table.posted().find(other.wire())) << "the world's stays plain";
  table.release(posted.index());
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace ist

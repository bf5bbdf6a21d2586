// Halo exchanges of fields in all kinds of memory, and of fields that change. Run on 1, 2, 3, 4, 5 and 8 ranks.
#include <chrono>
#include <thread>

#include "halo_combinations.hpp"

namespace {

using namespace rank_test;

TEST(HaloFields, of_every_kind_by_every_packing) {
  for (const ist_kind kind : all_kinds())
    for (const ist_halo_packing packing : {IST_HALO_AUTO, IST_HALO_CALLS, IST_HALO_LAYOUTS, IST_HALO_LOOPS})
      for (const int periods : {0, 3}) {
        exchange(two_dimensions(periods), mixture(), {packing, IST_HALO_MESSAGES, {kind}, packing == IST_HALO_CALLS});
        if (HasFailure()) FAIL() << "kind " << kind << ", packing " << packing << ", periods " << periods;
      }
}

// The cuts and periodicities that halo_test.cpp has of host memory, each with one order in memory; with ISTHMUS_TEST_HALOS=all with each, and in
// four dimensions, too, as on a machine with GPUs.
TEST(HaloFields, of_devices_in_every_combination) {
  const char* const wanted = std::getenv("ISTHMUS_TEST_HALOS");
  for (const ist_kind kind : all_kinds()) {
    if (kind == IST_KIND_HOST) continue;
    every_combination_of(kind, wanted != nullptr && std::string{wanted} == "all");
    if (HasFailure()) FAIL() << "kind " << kind;
  }
}

TEST(HaloFields, of_several_kinds_are_one_exchange) {
  auto kinds = all_kinds();
  for (std::size_t first = 0; first < kinds.size(); ++first) {
    exchange(two_dimensions(3), mixture(), {IST_HALO_LAYOUTS, IST_HALO_MESSAGES, kinds, false});
    std::rotate(kinds.begin(), kinds.begin() + 1, kinds.end());
  }
  // Ranks have them in other places.
  if (rank() % 2 == 1) std::rotate(kinds.begin(), kinds.begin() + 1, kinds.end());
  exchange(two_dimensions(1), mixture(), {IST_HALO_CALLS, IST_HALO_MESSAGES, kinds, true});
}

TEST(HaloFields, packed_in_other_ways_by_every_rank_meet) {
  exchange(two_dimensions(3), mixture(),
           {static_cast<ist_halo_packing>(1 + rank() % 3), IST_HALO_MESSAGES, {IST_KIND_HOST}, false});
}

TEST(HaloFields, go_one_sided_into_symmetric_heaps) {
  for (const ist_kind kind : all_kinds()) {
    if (kind == IST_KIND_OPENCL) continue;
    exchange(two_dimensions(2), mixture(), {IST_HALO_LAYOUTS, IST_HALO_ONE_SIDED, {kind}, true});
    if (HasFailure()) FAIL() << "kind " << kind;
  }
}

TEST(HaloFields, take_turns_and_change_their_number_and_shape_on_the_fly) {
  Made one(two_dimensions(3)), two(two_dimensions(3)), more(two_dimensions(3));
  for (const FieldShape& shape : mixture()) one.add(shape), two.add(shape), more.add(shape);
  FieldShape large{40, {2, 2}, {3, 1}, {0, 0}, {0, 0}, {0, 1, 2, 3}};
  more.add(large);
  ist_halo halo = IST_HALO_NULL;
  IST_OK_OR_FAIL(ist_halo_create(one.grid, one.count(), one.given.data(), nullptr, &halo));
  int number = 0;
  for (Made* const now : {&one, &two, &one, &more, &two, &more, &one}) {
    // With only the first fields, too.
    for (const int count : {now->count(), 2}) {
      for (const auto& field : now->fields) field->fill(number);
      IST_OK_OR_FAIL(ist_halo_set_fields(halo, count, now->given.data()));
      step(halo, number % 2 == 0);
      for (int f = 0; f < count; ++f) now->fields[at(f)]->check(number, "time " + std::to_string(number));
      ++number;
    }
    if (HasFailure()) break;
  }
  IST_OK_OR_FAIL(ist_halo_free(&halo));
}

// What cannot be set leaves what was there, as often as it is tried.
TEST(HaloFields, that_cannot_be_set_leave_those_before) {
  Made one(two_dimensions(3)), two(two_dimensions(3));
  for (const FieldShape& shape : mixture()) one.add(shape), two.add(shape);
  ist_halo halo = IST_HALO_NULL;
  IST_OK_OR_FAIL(ist_halo_create(one.grid, 2, one.given.data(), nullptr, &halo));
  auto nowhere = one.given;
  nowhere[2].buffer = ist_host(nullptr);
  auto thin = one.given[0];
  std::array<ist_halo_range, 2> ranges{one.fields[0]->range(0), one.fields[0]->range(1)};
  ranges[0].plus = 40, ranges[0].total_length = ranges[0].end + 41;
  thin.ranges = ranges.data();
  for (int time = 0; time < 6; ++time) {
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_set_fields(halo, 3, nowhere.data()));
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_set_fields(halo, 1, &thin));
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_set_fields(halo, 2, &nowhere[1]));
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_set_fields(halo, 0, nullptr));
    // First those of the start, and then others of their shapes, whose packing is made anew.
    Made& now = time < 2 ? one : two;
    if (time >= 2) IST_OK_OR_FAIL(ist_halo_set_fields(halo, 2, now.given.data()));
    for (const auto& field : now.fields) field->fill(time);
    step(halo, false);
    for (int f = 0; f < 2; ++f) now.fields[at(f)]->check(time, "time " + std::to_string(time));
  }
  IST_OK_OR_FAIL(ist_halo_free(&halo));
}

// The fields before are gone, so that nobody could go back to them; others of their shapes are exchanged with what was made for them.
TEST(HaloFields, whose_memory_is_gone_are_followed_by_others_also_where_some_could_not_be_set_in_between) {
  for (const ist_kind kind : all_kinds()) {
    if (kind == IST_KIND_OPENCL) continue;  // whose driver is not asked about objects that were released
    Made one(two_dimensions(3)), two(two_dimensions(3));
    one.add(mixture()[0], kind), one.add(mixture()[2], kind), two.add(mixture()[0], kind), two.add(mixture()[2], kind);
    ist_halo halo = IST_HALO_NULL;
    IST_OK_OR_FAIL(ist_halo_create(one.grid, 2, one.given.data(), nullptr, &halo));
    one.fields.clear();
    auto nowhere = two.given;
    nowhere.push_back(two.given[0]);
    nowhere[2].buffer = ist_host(nullptr);
    for (int times = 0; times < 2; ++times) EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_set_fields(halo, 3, nowhere.data()));
    IST_OK_OR_FAIL(ist_halo_set_fields(halo, 2, two.given.data()));
    for (const auto& field : two.fields) field->fill(7);
    step(halo, false);
    for (const auto& field : two.fields) field->check(7, "others");
    IST_OK_OR_FAIL(ist_halo_free(&halo));
  }
}

std::string text_of(ist_halo halo) {
  std::size_t needed = 0;
  EXPECT_EQ(IST_OK, ist_halo_text(halo, nullptr, 0, &needed));
  std::string text(needed, '\0');
  EXPECT_EQ(IST_OK, ist_halo_text(halo, text.data(), text.size(), nullptr));
  return text;
}

// What was measured of one kind of memory is kept: the very numbers are told again.
TEST(HaloFields, of_other_shapes_are_packed_as_was_measured_at_first) {
  for (const ist_kind kind : all_kinds()) {
    Made one(two_dimensions(3)), two(two_dimensions(3));
    one.add(mixture()[0], kind), two.add(mixture()[1], kind), two.add(mixture()[2], kind);
    ist_halo halo = IST_HALO_NULL;
    IST_OK_OR_FAIL(ist_halo_create(one.grid, 1, one.given.data(), nullptr, &halo));
    const auto measured = [&] {
      const std::string text = text_of(halo);
      return text.substr(text.find("packed by"), text.find('\n', text.find("packed by")) - text.find("packed by"));
    };
    const std::string before = measured();
    EXPECT_NE(before.find("(measured: layouts "), std::string::npos) << before;
    for (const int time : {0, 1, 2, 3}) {
      Made& now = time % 2 == 0 ? two : one;
      IST_OK_OR_FAIL(ist_halo_set_fields(halo, now.count(), now.given.data()));
      EXPECT_EQ(measured(), before);
      for (const auto& field : now.fields) field->fill(time);
      step(halo, false);
      for (const auto& field : now.fields) field->check(time, "time " + std::to_string(time));
    }
    IST_OK_OR_FAIL(ist_halo_free(&halo));
  }
}

// Whoever comes late to unpacking finds the cells of that exchange, although its neighbours are at the next one already.
TEST(HaloFields, wait_for_a_late_unpack) {
  for (const ist_kind kind : all_kinds())
    for (const ist_halo_way way : {IST_HALO_MESSAGES, IST_HALO_ONE_SIDED}) {
      if (kind == IST_KIND_OPENCL && way == IST_HALO_ONE_SIDED) continue;
      Made made(two_dimensions(3));
      made.add(mixture()[0], kind), made.add(mixture()[2], kind);
      const ist_halo_options options{sizeof options, 0, IST_HALO_LOOPS, way, 0};
      ist_halo halo = IST_HALO_NULL;
      IST_OK_OR_FAIL(ist_halo_create(made.grid, 2, made.given.data(), &options, &halo));
      for (int time = 0; time < 2 * size(); ++time) {
        for (const auto& field : made.fields) field->fill(time);
        IST_OK_OR_FAIL(ist_halo_pack(halo));
        IST_OK_OR_FAIL(ist_halo_start_exchange(halo));
        IST_OK_OR_FAIL(ist_halo_wait(halo));
        // Another rank each time; the others start the next exchange meanwhile, as far as they get.
        if (time % size() == rank()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        IST_OK_OR_FAIL(ist_halo_unpack(halo));
        for (const auto& field : made.fields) field->check(time, "time " + std::to_string(time));
      }
      IST_OK_OR_FAIL(ist_halo_free(&halo));
      if (HasFailure()) FAIL() << "kind " << kind << ", way " << way;
    }
}

TEST(HaloFields, are_asked_for_instead_of_waited_for) {
  for (const ist_halo_way way : {IST_HALO_MESSAGES, IST_HALO_ONE_SIDED}) {
    Made made(two_dimensions(3));
    made.add(mixture()[0]), made.add(mixture()[3]);
    const ist_halo_options options{sizeof options, 0, IST_HALO_CALLS, way, 0};
    ist_halo halo = IST_HALO_NULL;
    IST_OK_OR_FAIL(ist_halo_create(made.grid, 2, made.given.data(), &options, &halo));
    int over = 1;
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_test(halo, &over));
    EXPECT_EQ(over, 0);
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_test(halo, nullptr));
    for (int time = 0; time < 4; ++time) {
      for (const auto& field : made.fields) field->fill(time);
      IST_OK_OR_FAIL(ist_halo_pack(halo));
      IST_OK_OR_FAIL(ist_halo_start_exchange(halo));
      over = 0;
      // It may be over at once; of two ranks it is not before the other one has started.
      while (over == 0) IST_OK_OR_FAIL(ist_halo_test(halo, &over));
      EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_wait(halo)) << "unpack is next";
      IST_OK_OR_FAIL(ist_halo_unpack(halo));
      for (const auto& field : made.fields) field->check(time, "time " + std::to_string(time));
    }
    IST_OK_OR_FAIL(ist_halo_free(&halo));
  }
}

TEST(HaloFields, of_two_time_levels_swap_in_every_kind_and_way) {
  for (const ist_kind kind : all_kinds())
    for (const ist_halo_way way : {IST_HALO_MESSAGES, IST_HALO_ONE_SIDED}) {
      if (kind == IST_KIND_OPENCL && way == IST_HALO_ONE_SIDED) continue;
      Made levels[2]{Made(two_dimensions(3)), Made(two_dimensions(3))};
      for (Made& level : levels) level.add(mixture()[0], kind), level.add(mixture()[2], kind);
      const ist_halo_options options{sizeof options, 0, IST_HALO_AUTO, way, 0};
      ist_halo halo = IST_HALO_NULL;
      IST_OK_OR_FAIL(ist_halo_create(levels[0].grid, 2, levels[0].given.data(), &options, &halo));
      for (int time = 0; time < 7; ++time) {
        Made& level = levels[time % 2];
        for (const auto& field : level.fields) field->fill(time);
        IST_OK_OR_FAIL(ist_halo_set_fields(halo, 2, level.given.data()));
        step(halo, false);
        for (const auto& field : level.fields) field->check(time, "time " + std::to_string(time));
      }
      if (way == IST_HALO_ONE_SIDED) {
        EXPECT_EQ(IST_ERR_UNSUPPORTED, ist_halo_set_fields(halo, 1, levels[0].given.data()));
      }
      IST_OK_OR_FAIL(ist_halo_free(&halo));
    }
}

TEST(HaloFields, packed_may_be_overwritten_before_they_are_sent) {
  Made made(two_dimensions(3));
  made.add(mixture()[0]);
  ist_halo halo = IST_HALO_NULL;
  IST_OK_OR_FAIL(ist_halo_create(made.grid, 1, made.given.data(), nullptr, &halo));
  made.fields[0]->fill(1);
  IST_OK_OR_FAIL(ist_halo_pack(halo));
  made.fields[0]->fill(2);
  IST_OK_OR_FAIL(ist_halo_pack(halo));  // once more, and this one counts
  made.fields[0]->fill(3);
  IST_OK_OR_FAIL(ist_halo_exchange(halo));
  made.fields[0]->fill(2);
  IST_OK_OR_FAIL(ist_halo_unpack(halo));
  made.fields[0]->check(2, "what was packed");
  IST_OK_OR_FAIL(ist_halo_free(&halo));
}

}  // namespace
